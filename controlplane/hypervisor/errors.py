# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong between us and libvirt. No other package sees a libvirtError.

HypervisorError
 +-- NoSuchDomain    libvirt has no domain of that name
 +-- InvalidDomain   libvirt or QEMU cannot make a domain of this XML; trying again does not help
 +-- WrongState      the domain's state does not allow it (already running, not running)
 +-- AgentSilent     the guest's agent is absent or does not respond
 +-- ResponseTooLong the guest's agent sends more than is read
 +-- NotText         libvirt's response is not UTF-8
 +-- TimedOut        no response within the deadline; the call may still take effect
 +-- Disconnected    the connection is gone or was never made; the guest may well be running
"""

from __future__ import annotations

import libvirt

FAILURES = (libvirt.libvirtError, UnicodeDecodeError, SystemError)
"""What the binding raises when libvirt fails. The message may be a tenant's, see `translate_text_error`."""


class HypervisorError(Exception):
    """libvirt failed. The text names the attempt and libvirt's reason."""


class NoSuchDomain(HypervisorError):
    """libvirt has no domain of that name."""


class InvalidDomain(HypervisorError):
    """The domain's XML cannot be realised here."""


class WrongState(HypervisorError):
    """The domain's state does not allow this."""


class AgentSilent(HypervisorError):
    """The guest's agent is absent or silent."""


class ResponseTooLong(HypervisorError):
    """The agent's response is longer than what is read."""


class NotText(HypervisorError):
    """libvirt's response is not text. Whether the call took effect is unknown."""


class TimedOut(HypervisorError):
    """No response within the deadline; the effect is unknown."""


class Disconnected(HypervisorError):
    """No connection to libvirtd. Says nothing about the guest."""


# By name: an older binding may lack one, which then never matches.
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
"""libvirt has one error code for every way in which QEMU refuses its command line. A missing file of an image stays
missing, so these are final; other causes (no memory) may pass."""
_TEXT_LIMIT = 2000


def translate(doing: str, error: libvirt.libvirtError) -> HypervisorError:
    """Turn libvirt's error into ours. doing: the attempt and its object, e.g. "start domain 6a1a…"."""
    code, domain = error.get_error_code(), error.get_error_domain()
    kinds = {getattr(libvirt, name, None): kind for name, kind in _KINDS.items()}
    kind = kinds.get(code, HypervisorError) if code is not None else HypervisorError
    if kind is HypervisorError and domain == getattr(libvirt, "VIR_FROM_RPC", None):
        kind = Disconnected  # a broken stream or a refused connection is a plain system error of the RPC layer
    if kind is HypervisorError and any(words in str(error) for words in _FATAL_WORDS):
        kind = InvalidDomain
    return kind(f"cannot {doing}: {str(error)[:_TEXT_LIMIT]}")


def translate_text_error(doing: str, error: BaseException) -> NotText | None:
    """Turn the binding's decoding error into ours; None for any other error.

    The binding decodes all strings of libvirt. For a result it raises UnicodeDecodeError, for the message of an error
    SystemError with that cause.
    """
    cause = error.__cause__ if isinstance(error, SystemError) else error
    if not isinstance(cause, UnicodeDecodeError):
        return None
    return NotText(f"cannot {doing}: libvirt's answer is not text (UTF-8)")
