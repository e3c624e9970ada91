# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Executes power requests of virt-api: finds the launcher, and executes the request there.

It checks the guest's identity: the Pod of that UID is on this node, the VMI controls it, and the domain has both UIDs.
vmi/user_requests decides which request a state allows. This module writes nothing: vmi/ observes the domain, and
reports the outcome in the VMI's status. The response to a pause comes when the status reports it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from controlplane.api.objects.decode import readable_vmi
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Cache, Clock
from controlplane.hypervisor.cpu_quota import TokenBucket
from controlplane.links.handler import Answer, Done, NotDone, Power, Verb
from controlplane.virt_handler.api_endpoint.pause_waiter import PauseWaiter
from controlplane.virt_handler.launchers.of_guest import Launchers, LauncherSession, absent, find_session
from controlplane.virt_handler.vmi.events import RecordEvent, reference, user_request_event
from controlplane.virt_handler.vmi.ports import Busy, NoContact, VerbRefused
from controlplane.virt_handler.vmi.world import Launcher

log = logging.getLogger(__name__)

_EVENT_BURST, _EVENT_RATE = 60, 0.5
"""Token bucket of Events: its size, and its refill per second. A user can send any number of requests."""


class UserRequestSession(LauncherSession, Protocol):
    """A launcher that executes user requests."""

    async def execute_user_request(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int) -> None:
        """Busy, VerbRefused, NoContact."""


class PowerRequests:
    """Handles links.handler.Power."""

    def __init__(
        self, node: str, launchers: Launchers[UserRequestSession], vmis: Cache, clock: Clock, record_event: RecordEvent
    ) -> None:
        self._node = node
        self._launchers = launchers
        self._vmis = vmis
        self._clock = clock
        self._record_event = record_event
        self._pauses = PauseWaiter(vmis)
        self._event_tokens = TokenBucket(_EVENT_BURST, _EVENT_RATE)
        self._event_tasks: set[asyncio.Task[None]] = set()

    async def answer(self, request: Power) -> Answer:
        """Execute a request. Cancelling this call does not cancel a request that has begun."""
        session = find_session(self._node, self._launchers, request.guest)
        if session is None:
            return absent(self._node)
        launcher = session.launcher()
        extra = {"verb": request.verb, "key": str(launcher.pod.vmi_key), "uid": request.guest.vmi_uid}
        try:
            vmi = self._cached_vmi(launcher.pod.vmi_key, request.guest.vmi_uid)
            await session.execute_user_request(request.verb, vmi, thaw_after=request.thaw_after_seconds)
        except VerbRefused as error:
            return NotDone("refused", sanitize(str(error)))
        except NoContact as error:
            log.warning("a user request failed", extra={**extra, "error": sanitize(str(error))})
            return NotDone("busy" if isinstance(error, Busy) else "lost", sanitize(str(error)))
        if request.verb in ("pause", "unpause") and not await self._is_reported(launcher, request):
            return NotDone("lost", "the guest was paused, but the status does not report it: the guest may continue")
        log.info("user request carried out", extra=extra)
        if vmi is not None and self._event_tokens.take(1.0, self._clock.monotonic()):
            # The response does not wait for the Event.
            task = asyncio.create_task(self._try_record_event(vmi, request.verb))
            self._event_tasks.add(task)
            task.add_done_callback(self._event_tasks.discard)
        return Done()

    async def _is_reported(self, launcher: Launcher, request: Power) -> bool:
        """Wait until the status reports a pause. Waits of earlier pauses end."""
        key = launcher.pod.vmi_key
        if key is None:
            return True
        self._pauses.end(key)
        return request.verb != "pause" or await self._pauses.wait(key, request.guest.vmi_uid)

    async def _try_record_event(self, vmi: VirtualMachineInstance, verb: Verb) -> None:
        try:
            await self._record_event(reference(vmi), user_request_event(verb, self._clock.now()))
        except ApiError as error:
            log.warning("cannot record an Event", extra={"verb": verb, "error": str(error)})

    def _cached_vmi(self, key: Key | None, uid: str) -> VirtualMachineInstance | None:
        vmi = None if key is None else readable_vmi(self._vmis.get(key))
        return vmi if vmi is not None and vmi.metadata.uid == uid else None
