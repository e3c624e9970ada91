# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Executes users' requests on one launcher's guest, queries its agent and takes its screenshot for users.

vmi/user_requests.py decides which request a state allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.hypervisor.errors import HypervisorError
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.agent import Agent, NoAgent
from controlplane.virt_handler.launchers.connection import LauncherConnection
from controlplane.virt_handler.launchers.freeze import Freeze
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.soft_reboot import soft_reboot
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from controlplane.virt_handler.vmi.user_requests import (
    check_user_request,
    has_acpi,
    unpause_resumes_domain,
    user_pause_after,
)


class UserRequests:
    """The user requests of one launcher."""

    def __init__(self, record: LauncherRecord, connection: LauncherConnection, agent: Agent, freeze: Freeze) -> None:
        self._record = record
        self._connection = connection
        self._agent = agent
        self._freeze = freeze

    async def execute(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int = 0) -> None:
        """Execute a request on the guest in its current state. VerbRefused, NoContact.

        vmi: from the cache. thaw_after: seconds after which frozen file systems are thawed; 0: never.
        """
        await self._connection.refresh()
        check = check_user_request(verb, vmi, self._record.launcher(), self._record.vmi_uid)
        if check.refusal:
            raise VerbRefused(check.refusal)
        if check.is_done:
            return
        await self._execute(verb, thaw_after)
        await self._connection.refresh()

    async def _execute(self, verb: Verb, thaw_after: int) -> None:
        run, record = self._connection.run_on_domain, self._record
        match verb:
            case "pause":
                await run(lambda guest: guest.pause())
                # After an I/O error in between, the stored pause keeps the reconciler from resuming the guest.
                await self._connection.refresh()
                record.publish(is_paused_by_user=user_pause_after(True, record.status.state))
            case "unpause":
                if unpause_resumes_domain(record.status):
                    await run(lambda guest: guest.resume())
                record.publish(is_paused_by_user=False)
            case "reset":
                await run(lambda guest: guest.reset())
            case "softreboot":
                press = partial(run, lambda guest: guest.reboot())
                await soft_reboot(self._agent, press if has_acpi(record.status) else None)
            case "freeze":
                await self._freeze.freeze(thaw_after)
            case "unfreeze":
                await self._freeze.thaw()

    async def take_screenshot(self) -> bytearray:
        """Return libvirt's picture of the guest's screen (untrusted). VerbRefused, NoContact."""
        self._connection.require()
        if not self._record.has_own_domain:
            raise VerbRefused("VMI is not running")
        return await self._connection.run_on_domain(lambda guest: guest.screenshot())

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Query the guest's agent; return the responses by command. VerbRefused, NoContact."""
        self._connection.require()
        if not self._record.has_own_domain:
            raise VerbRefused("VMI is not running")
        try:
            return await self._agent.inquire(commands)
        except NoAgent as error:
            raise VerbRefused(str(error)) from error
        except HypervisorError as error:
            raise NoContact(str(error)) from error
