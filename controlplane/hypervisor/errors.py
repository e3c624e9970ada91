# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong between us and libvirt. Nothing above ever sees a libvirtError.

HypervisorError
 +-- NoSuchDomain    libvirt knows no domain of that name
 +-- InvalidDomain   libvirt or QEMU cannot make a domain of this description: trying again will not help
 +-- WrongState      the domain is not in a state for this (already running, not running)
 +-- AgentSilent     the guest's agent is not there or does not answer
 +-- AnswerTooLong   the guest's agent answers with more than is read
 +-- NotText         libvirt answered, in bytes that are not UTF-8
 +-- TimedOut        no answer within the deadline; the call may still take effect
 +-- Disconnected    the connection is gone or was never made; the guest may well be alive
"""

from __future__ import annotations

import libvirt

FAILURES = (libvirt.libvirtError, UnicodeDecodeError, SystemError)
"""What the binding raises when libvirt fails, whose reason may be a tenant's words: see `translate_text_error`."""


class HypervisorError(Exception):
    """libvirt did not do what was asked. Its text names the attempt and libvirt's reason."""


class NoSuchDomain(HypervisorError):
    """libvirt knows no domain of that name."""


class InvalidDomain(HypervisorError):
    """The description cannot be realised here."""


class WrongState(HypervisorError):
    """The domain is not in a state for this."""


class AgentSilent(HypervisorError):
    """The guest's agent is absent or silent."""


class AnswerTooLong(HypervisorError):
    """The agent's answer is longer than what is read of one."""


class NotText(HypervisorError):
    """What libvirt said cannot be read. Whether it did what was asked is not known."""


class TimedOut(HypervisorError):
    """No answer within the deadline; the effect is unknown."""


class Disconnected(HypervisorError):
    """No connection to libvirtd. Says nothing about the guest."""


# By symbolic name: the numbers are libvirt's business, and a name that an older binding lacks simply never occurs.
_KINDS: dict[str, type[HypervisorError]] = {
    "VIR_ERR_NO_DOMAIN": NoSuchDomain,
    "VIR_ERR_XML_ERROR": InvalidDomain,
    "VIR_ERR_XML_DETAIL": InvalidDomain,
    "VIR_ERR_XML_INVALID_SCHEMA": InvalidDomain,
    "VIR_ERR_CONFIG_UNSUPPORTED": InvalidDomain,
    "VIR_ERR_NO_NAME": InvalidDomain,
    "VIR_ERR_OS_TYPE": InvalidDomain,
    "VIR_ERR_NO_SUPPORT": InvalidDomain,
    "VIR_ERR_CPU_INCOMPATIBLE": InvalidDomain,
    "VIR_ERR_OPERATION_INVALID": WrongState,
    "VIR_ERR_DOM_EXIST": WrongState,
    "VIR_ERR_AGENT_UNRESPONSIVE": AgentSilent,
    "VIR_ERR_AGENT_UNSYNCED": AgentSilent,
    "VIR_ERR_AGENT_COMMAND_TIMEOUT": AgentSilent,
    "VIR_ERR_OPERATION_TIMEOUT": TimedOut,
    "VIR_ERR_NO_CONNECT": Disconnected,
    "VIR_ERR_INVALID_CONN": Disconnected,
    "VIR_ERR_RPC": Disconnected,
}
_FATAL_WORDS = (
    "could not open kernel file",
    "could not load kernel",
    "could not load initrd",
    "error reading initrd",
    "could not open initrd",
)
"""QEMU refuses its command line with one error code of libvirt, whatever the cause. Files of an image do not appear
later, so these are final; what is not listed (a lack of memory) may pass."""
_TEXT_LIMIT = 2000


def translate(doing: str, error: libvirt.libvirtError) -> HypervisorError:
    """Turn libvirt's error into ours. doing: the attempt and its object, e.g. "start domain 6a1a…"."""
    code, domain = error.get_error_code(), error.get_error_domain()
    found = {getattr(libvirt, name, None): kind for name, kind in _KINDS.items()}
    kind = found.get(code, HypervisorError) if code is not None else HypervisorError
    if kind is HypervisorError and domain == getattr(libvirt, "VIR_FROM_RPC", None):
        kind = Disconnected  # a broken stream or a refused dial comes as a bare system error of the RPC layer
    if kind is HypervisorError and any(words in str(error) for words in _FATAL_WORDS):
        kind = InvalidDomain
    return kind(f"cannot {doing}: {str(error)[:_TEXT_LIMIT]}")


def translate_text_error(doing: str, error: BaseException) -> NotText | None:
    """Turn the binding's own error into ours: it makes a str of all that libvirt says. None: it is another error.

    Of an answer it raises UnicodeDecodeError; of a failure's reason that is set beside the failure, a SystemError.
    """
    said = error.__cause__ if isinstance(error, SystemError) else error
    if not isinstance(said, UnicodeDecodeError):
        return None
    return NotText(f"cannot {doing}: what libvirt says is no text (UTF-8)")
