# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboots one launcher's guest from the inside: through its agent if there is one, else with the ACPI power button.

The agent reboots at once; a guest may ignore the button. QEMU's agent does not respond to a shutdown command that it
carries out. So if an agent responds to a ping and then not to the command, it has carried out the command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from controlplane.api.objects.pod import sanitize
from controlplane.domain.agent import PING, SHUTDOWN
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, ResponseTooLong, TimedOut
from controlplane.virt_handler.launchers.agent import Agent, NoAgent
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

_REFUSES_SECONDS = 2
"""How long to wait for a refusal. A successful request always takes this long."""


async def soft_reboot(agent: Agent, press: Callable[[], Awaitable[None]] | None) -> None:
    """Reboot the guest. press: presses the power button; None if the guest has none. VerbRefused, NoContact."""
    try:
        await agent.order(PING)
    except NoAgent as error:
        await _press(press, str(error))
    except HypervisorError as error:
        await _press(press, f"the guest's agent does not respond: {sanitize(str(error))}")
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
