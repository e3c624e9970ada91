# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has one launcher's guest boot again by itself: its agent does it where there is one, else the power button.

An agent does it at once and always; whether a guest heeds the button is the guest's to say. QEMU's agent gives no
answer to that order when it carries it out, so an agent that answered a moment before and is silent then has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from controlplane.api.objects.pod import sanitize
from controlplane.domain.agent import PING, SHUTDOWN
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, ResponseTooLong, TimedOut
from controlplane.virt_handler.launchers.agent import Agent, NoAgent
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

_REFUSES_SECONDS = 2
"""An agent that refuses says so by then; that long does whoever asked wait for one that obeys."""


async def soft_reboot(agent: Agent, press: Callable[[], Awaitable[None]] | None) -> None:
    """Carry it out. press: the power button; None where the guest has none. VerbRefused, NoContact."""
    try:
        await agent.order(PING)
    except NoAgent as error:
        await _press(press, str(error))
    except HypervisorError as error:
        await _press(press, f"the guest's agent does not answer: {sanitize(str(error))}")
    else:
        await _by_agent(agent)


async def _by_agent(agent: Agent) -> None:
    try:
        await agent.order(SHUTDOWN, _REFUSES_SECONDS, {"mode": "reboot"})
    except AgentSilent:
        return
    except NoAgent as error:
        raise VerbRefused(str(error)) from error
    except (ResponseTooLong, TimedOut, Disconnected) as error:
        raise NoContact(str(error)) from error
    except HypervisorError as error:
        raise VerbRefused(f"the guest's agent refuses it: {sanitize(str(error))}") from error


async def _press(press: Callable[[], Awaitable[None]] | None, why: str) -> None:
    if press is None:
        raise VerbRefused(f"VMI has no ACPI feature, and {why}")
    await press()
