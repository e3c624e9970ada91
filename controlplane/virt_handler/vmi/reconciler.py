# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI reconciler of one node: it reads caches and launchers, and begins operations and writes. It decides nothing.

A start costs one status patch and one Event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from controlplane.api.objects.decode import DecodeError, decode_vmi, encode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.engine.errors import ApiError, Invalid, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Cache, Clock, Json
from controlplane.virt_handler.vmi.controller_state import ControllerState, VmiState
from controlplane.virt_handler.vmi.decide import BY_PHASE, decide, refuse_start
from controlplane.virt_handler.vmi.events import RecordEvent, VmiEvent, action_event, reference, status_events
from controlplane.virt_handler.vmi.liveness import missing_pod
from controlplane.virt_handler.vmi.migration_writes import writes_of
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact, OperationInputs, Session, Sessions
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import (
    AbortTransfer,
    Action,
    BeginTransfer,
    Destroy,
    DestroyOrphan,
    DestroyRemoved,
    Dial,
    Expected,
    Look,
    LookForLauncher,
    ReadVmi,
    SessionAction,
    World,
)

log = logging.getLogger(__name__)


class VmiReconciler:
    """Implements engine.plan.Reconciler."""

    def __init__(
        self,
        node: str,
        vmis: Cache,
        launchers: Sessions,
        api: Api,
        clock: Clock,
        *,
        record_event: RecordEvent,
        start_blocked_reason: Callable[[], str],
    ) -> None:
        """start_blocked_reason: returns why no guest may start on this node now; "" if guests may start."""
        self._node = node
        self._vmis = vmis
        self._launchers = launchers
        self._api = api
        self._clock = clock
        self._record_event = record_event
        self._start_blocked_reason = start_blocked_reason
        self.controller_state = ControllerState()

    def observe(self, key: Key) -> World | None:
        """Read caches and sessions. Raises Unavailable while the VMI cache is not synced: absence proves nothing then.

        Unavailable retries the key: nothing else would enqueue it once the cache is synced.
        """
        if not self._vmis.synced:
            raise Unavailable(f"cannot judge VirtualMachineInstance {key}: the cache is not synced yet")
        now, monotonic = self._clock.now(), self._clock.monotonic()
        vmi = self._read(key)
        if vmi is None or vmi.status.node_name != self._node:
            launchers = self._launchers.launchers_named(key)
            if not launchers:
                self.controller_state.forget(key)
                return None
            since = self.controller_state.orphaned_since(key, monotonic)
            return World(
                node=self._node, vmi=None, launchers=launchers, now=now, monotonic=monotonic, orphaned_since=since
            )
        state = self.controller_state.of(vmi)
        _note_phase(key, vmi, state)
        if vmi.metadata.deletion_timestamp is not None and state.deleting_since is None:
            state.deleting_since = monotonic
        world = World(
            node=self._node,
            vmi=vmi,
            launchers=self._launchers.launchers_of(vmi.metadata.uid),
            now=now,
            monotonic=monotonic,
            deleting_since=state.deleting_since,
            are_launchers_known=self._launchers.synced,
            node_trouble=self._launchers.node_trouble,
            start_blocked_reason=self._start_blocked_reason(),
        )
        if state.look is not None and state.sought != missing_pod(world):
            state.look = None  # the Pod is listed again, or another Pod has the grant
        return replace(world, look=state.look)

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        """Carry out one action. Of a launcher's operation it only does the beginning. Raises Unavailable."""
        if isinstance(action, LookForLauncher):
            await self._look(world, action)
            return
        session = self._launchers.session(action.pod_uid)
        if session is None:
            return
        try:
            await self._do(world, session, action)
        except NoContact as error:
            raise Unavailable(str(error)) from error
        event = action_event(action)
        if event is not None and world.vmi is not None and self.controller_state.of(world.vmi).is_news(event.reason):
            await self._try_record_event(reference(world.vmi), event)

    async def _try_record_event(self, about: Json, event: VmiEvent) -> None:
        """Record an Event; a failure is only logged."""
        try:
            await self._record_event(about, event)
        except ApiError as error:
            log.warning("cannot record an Event", extra={"reason": event.reason, "error": str(error)})

    async def write_status(self, world: World, status: VirtualMachineInstanceStatus) -> None:
        """Patch what differs, on the observed version only, and record its Events."""
        vmi = world.vmi
        if vmi is None:
            return
        meta = vmi.metadata
        body = await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            Key(meta.namespace, meta.name),
            {"status": merge_patch(encode(vmi.status), encode(status))},
            subresource="status",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )
        if status.phase != vmi.status.phase:
            log.info(
                "phase changed", extra={"key": f"{meta.namespace}/{meta.name}", "uid": meta.uid, "phase": status.phase}
            )
        for event in status_events(vmi.status, status):
            await self._try_record_event(body, event)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        """Log a refused step. The status reports a refused start; a refused status is a bug here."""
        extra = {"vmi": "" if world.vmi is None else world.vmi.metadata.name, "step": type(problem.step).__name__}
        log.warning("refused", extra={**extra, "error": str(problem.error)})

    async def _look(self, world: World, action: LookForLauncher) -> None:
        if world.vmi is None:
            return
        try:
            traces = await self._launchers.find_traces(action.pod_uid)
        except CannotLook as error:
            raise Unavailable(str(error)) from error
        count = 1 if world.look is None else world.look.count + 1
        state = self.controller_state.of(world.vmi)
        state.sought, state.look = action.pod_uid, Look(traces, self._clock.monotonic(), count)

    async def _do(self, world: World, session: Session, action: SessionAction) -> None:
        match action:
            case ReadVmi():
                session.expect(await self._read_expected(session.launcher().pod))
            case Dial():
                session.admit()
            case DestroyRemoved():
                await self._destroy_removed(session, action)
            case DestroyOrphan():
                await self._destroy_orphan(session, action)
            case BeginTransfer():
                self._begin_transfer(world, session, action)
            case AbortTransfer():
                session.abort_transfer()
            case _:
                session.perform(action, self._inputs(world, session))

    def _inputs(self, world: World, session: Session) -> OperationInputs:
        if (vmi := world.vmi) is not None:
            return OperationInputs(vmi, lambda: self._granted(vmi, session))
        expected = session.launcher().expected
        return OperationInputs(None if expected is None else expected.vmi)

    def _begin_transfer(self, world: World, session: Session, action: BeginTransfer) -> None:
        migration = None if world.vmi is None else world.vmi.status.migration_state
        if world.vmi is not None and migration is not None:
            writes = writes_of(world.vmi, action, session, self._api, self._clock)
            session.transfer(world.vmi, migration, writes)

    async def _read_expected(self, pod: Pod) -> Expected:
        """Read the VMI that a Pod names. A VMI with another UID does not count."""
        if pod.vmi_key is None or pod.owner is None:
            return Expected(None)
        try:
            vmi = decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, pod.vmi_key))
        except NotFound:
            return Expected(None)
        except DecodeError as error:
            raise Invalid(str(error)) from error
        return Expected(vmi if vmi.metadata.uid == pod.owner.uid else None)

    async def _granted(self, vmi: VirtualMachineInstance, session: Session) -> VirtualMachineInstance:
        """Return the VMI if the API server grants the start now; a cache may be stale. Raises NoContact otherwise."""
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        try:
            current = decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key))
        except (ApiError, DecodeError) as error:
            raise NoContact(f"cannot read whether the start is granted: {error}") from error
        refusal = refuse_start(current, self._node, session.launcher())
        if current.metadata.uid != vmi.metadata.uid:
            refusal = "the VMI was replaced by another one"
        if refusal is not None:
            raise NoContact(f"the start is not granted: {refusal}")
        # An operation that began before the node was cut off has to wait as well.
        if reason := self._start_blocked_reason():
            raise NoContact(f"the start has to wait: {reason}")
        return current

    async def _destroy_removed(self, session: Session, action: DestroyRemoved) -> None:
        """Read the Pod from the API server first: an unlisted Pod may only have lost the label of the watch."""
        pod = session.launcher().pod
        key = Key(pod.metadata.namespace, pod.metadata.name)
        try:
            pod_json = await self._api.get(POD, key)
        except NotFound:
            pod_json = None
        if pod_json is not None and pod_json.get("metadata", {}).get("uid") == pod.uid:
            log.warning(
                "guest not ended", extra={"key": str(key), "because": "its Pod exists, though it is not listed"}
            )
            return
        session.perform(Destroy(action.pod_uid, action.because))

    async def _destroy_orphan(self, session: Session, action: DestroyOrphan) -> None:
        key = session.launcher().pod.vmi_key
        if key is None:
            return
        try:
            vmi_json = await self._api.get(VIRTUAL_MACHINE_INSTANCE, key)
        except NotFound:
            vmi_json = None
        if vmi_json is not None and vmi_json.get("metadata", {}).get("uid") == action.vmi_uid:
            log.info("not an orphan", extra={"key": str(key), "because": "its VMI exists, but not on this node"})
            return
        session.perform(Destroy(action.pod_uid, action.because))

    def _read(self, key: Key) -> VirtualMachineInstance | None:
        raw = self._vmis.get(key)
        if raw is None:
            return None
        try:
            return decode_vmi(raw)
        except DecodeError as error:
            log.warning("a VMI cannot be read", extra={"key": str(key), "error": str(error)})
            return None


def _note_phase(key: Key, vmi: VirtualMachineInstance, state: VmiState) -> None:
    """Log an unknown phase, once."""
    phase = vmi.status.phase
    if phase not in BY_PHASE and state.strange_phase != phase:
        state.strange_phase = phase
        log.warning("VMI skipped: this version does not know its phase", extra={"key": str(key), "phase": phase})
