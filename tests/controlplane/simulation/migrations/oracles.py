# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invariants of migrations, checked from outside: on the true state of the nodes, and on every write.

While the source's QEMU exists the target's has never run (docs/adr/0016); a running guest has its complete state; and
no migration loses a guest: only those ended by a fault may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubevirt_api.condition_types import UNPAUSED

from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
)
from tests.controlplane.simulation.ledger import controlling_uid, numbers
from tests.controlplane.simulation.migrations.guest import MigratingLauncher, Stream
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.breach import Breach
from tests.support.calls import Call
from tests.support.store import OVER, Change, Json, Store

VMI, MIGRATION = VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION


PHASES = ("", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")


class MigrationOracles:
    """Follows the history. ended: UIDs of machines whose guest a fault has ended."""

    def __init__(self, store: Store, nodes: Iterable[Node], streams: list[Stream], ended: set[str]) -> None:
        self._store, self._nodes, self._streams, self._ended = store, tuple(nodes), streams, ended
        self._seen = 0
        self._begun: set[str] = set()
        """UIDs of machines whose guest has run."""
        self._executing: set[str] = set()
        """UIDs of Pods whose guest executed at the last look."""
        self._sent = 0
        self._at_work: dict[str, Stream] = {}
        """By the source's Pod: its last stream."""
        self.known_to_have_left: dict[str, Process] = {}
        """The process that knows that the guest of an ended Pod has moved."""
        self.outcomes: list[str] = []
        """How migrations ended."""

    def check(self) -> None:
        """Raise Breach when an invariant is violated."""
        new, self._seen = self._store.history[self._seen :], len(self._store.history)
        for text in (*self._by_truth(), *(message for item in new for message in self._by_change(item))):
            raise Breach(f"migrations: {text}")
        for node in self._nodes:
            node.endings.clear()

    def before(self, call: Call) -> None:
        """Raise Breach when virt-handler ends a guest without a cause, or stops one without a record in its status."""
        if call.verb == "stop":
            self._is_said(call)
        if call.verb not in ("destroy", "shut down"):
            return
        launcher = next(
            (launcher for launcher in self.launchers() if launcher.pod_uid == call.asked.get("pod_uid")), None
        )
        vmi = None if launcher is None else self._store.find(VMI, launcher.vmi)
        if (
            launcher is None
            or vmi is None
            or vmi["metadata"]["uid"] != launcher.vmi_uid
            or not launcher.is_running_guest
        ):
            return
        moving = moving_of(vmi)
        is_failed = bool(moving.get("failed")) and moving.get("targetPodUID") == launcher.pod_uid
        is_mine = launcher.pod_uid in (vmi.get("status", {}).get("activePods") or {})
        is_going = "deletionTimestamp" in vmi["metadata"] or is_final(phase_of(vmi))
        if not is_going and (is_mine or not is_failed) and self._is_there(launcher):
            raise Breach(f"migrations: ended: {call}, in {launcher.pod.name}, and its guest has to run")

    def _is_said(self, call: Call) -> None:
        """A successor of a process that stopped a guest can only learn from the status that no user did."""
        vmi = self._store.find(VMI, call.key)
        moving = {} if vmi is None else moving_of(vmi)
        if moving.get("sourcePodUID") == call.asked.get("pod_uid") and moving.get("mode") != "Paused":
            raise Breach(f"migrations: stop: {call}, and it is not written that it is stopped so that it can be sent")

    def _is_there(self, launcher: MigratingLauncher) -> bool:
        """Whether a Pod is as the kubelet created it: a force delete asks for the end of its guest."""
        pod = self._store.find(POD, launcher.pod)
        return pod is not None and pod["metadata"]["uid"] == launcher.pod_uid

    def launchers(self) -> list[MigratingLauncher]:
        there = (item for node in self._nodes for item in node.launchers.values())
        return [item for item in there if isinstance(item, MigratingLauncher)]

    def _by_truth(self) -> Iterator[str]:
        launchers = self.launchers()
        executing = [item for item in launchers if item.is_executing]
        for item in executing:
            self._begun.add(item.vmi_uid)
            if sum(each.vmi_uid == item.vmi_uid for each in executing) > 1:
                yield f"never two: {item.vmi} has run in two QEMUs that exist"
            if item.pod_uid not in self._executing and item.is_old:
                yield f"going back: the guest of {item.vmi} goes on as it was before it ran on elsewhere"
        self._executing = {item.pod_uid for item in executing}
        for stream in self._streams[self._sent :]:
            self._sent += 1
            yield from self._begins_unwritten(stream)
            before = self._at_work.get(stream.source.pod_uid)
            self._at_work[stream.source.pod_uid] = stream
            if before is not None and not before.is_over:
                yield f"one at a time: {stream.source.vmi} is sent, and is being sent already"
        kept = {item.vmi_uid for item in launchers if item.has_the_guest}
        for key, vmi in self._store.list(VMI):
            uid = vmi["metadata"]["uid"]
            is_to_run = "deletionTimestamp" not in vmi["metadata"] and not is_final(phase_of(vmi))
            if uid in self._begun and uid not in kept and is_to_run and uid not in self._ended:
                yield f"lost: the guest of {key} is lost, and no fault has ended it"

    def _begins_unwritten(self, stream: Stream) -> Iterator[str]:
        vmi = self._store.find(VMI, stream.source.vmi)
        moving = {} if vmi is None else moving_of(vmi)
        if moving.get("targetPodUID") != stream.target.pod_uid or not moving.get("startTimestamp"):
            yield f"begin: {stream.source.vmi} is sent, and it is not written that this begins"

    def _by_change(self, change: Change) -> Iterator[str]:
        if change.resource == VMI and change.after is not None and change.before is not None:
            yield from self._vmi_breaks(change, change.before, change.after)
        if change.resource == MIGRATION and change.after is not None and change.before is not None:
            yield from self._migration_breaks(change, change.before, change.after)
        is_told = change.before is not None and is_let_serve(change.before)
        if change.resource == POD and change.after is not None and is_let_serve(change.after) and not is_told:
            yield from self._serving_breaks(change.after)

    def _serving_breaks(self, pod: Json) -> Iterator[str]:
        """Services send only to the Pod that owns the run: the guest of another one does not respond."""
        mine = [vmi for _unused, vmi in self._store.list(VMI) if vmi["metadata"]["uid"] == controlling_uid(pod)]
        granted = [uid for vmi in mine for uid in vmi.get("status", {}).get("activePods") or {}]
        if mine and pod["metadata"]["uid"] not in granted:
            yield f"serving: Services send to {pod['metadata']['name']}, and the run is in {granted}"

    def _vmi_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        uid, key = after["metadata"]["uid"], change.key
        if is_final(phase_of(after)) and not is_final(phase_of(before)):
            is_wanted = "deletionTimestamp" in after["metadata"]
            if not is_wanted and uid not in self._ended:
                yield f"lost: {key} is {phase_of(after)}, and no fault has ended its guest"
            source = moving_of(before).get("sourcePodUID", "")
            is_to_be_given = source in (before["status"].get("activePods") or {})
            knows = self.known_to_have_left.get(source) if is_to_be_given else None
            if change.actor == "handler" and knows is not None and not knows.is_dead and not is_wanted:
                yield f"lost: {key} is {phase_of(after)}, and its writer knows that its guest has moved"
            mine = [item for item in self.launchers() if item.vmi_uid == uid and item.has_the_guest]
            if mine and uid not in self._ended:
                yield f"not dead: {key} is {phase_of(after)}, and its guest is there"
        was, now = (item.get("status", {}).get("activePods") or {} for item in (before, after))
        if len(now) > 1:
            yield f"never two: {key} is given to {now}"
        if was and was != now:
            yield from self._commit_breaks(change, before, after)
        elif was and numbers(before)[1] != numbers(after)[1]:
            yield f"epoch: {key} went on from {numbers(before)[1]} to {numbers(after)[1]}, and stays where it was"
        yield from self._state_breaks(change, moving_of(before), moving_of(after))

    def _commit_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        """The run is handed over once for each migration, to its target, and never while the source may run it."""
        was, moving, status = before["status"]["activePods"], moving_of(after), after["status"]
        given = {moving.get("targetPodUID"): moving.get("targetNode")}
        if status.get("activePods") != given or status.get("nodeName") != moving.get("targetNode"):
            yield f"commit: {change.key} is given to {status.get('activePods')}, and its migration goes to {given}"
        if numbers(after)[1] != numbers(before)[1] + 1:
            yield f"commit: {change.key} went on from epoch {numbers(before)[1]} to {numbers(after)[1]}"
        if any(item.pod_uid in was and item.is_running_guest for item in self.launchers()):
            yield f"commit: {change.key} is given away, and QEMU is there at the source"
        if moving.get("failed"):
            yield f"commit: {change.key} is given away by a migration that has failed"
        target = [item for item in self.launchers() if item.pod_uid == moving.get("targetPodUID")]
        if any(item.is_old for item in target):
            yield f"commit: {change.key} is given to a QEMU that has what was before"

    def _state_breaks(self, change: Change, was: Json, now: Json) -> Iterator[str]:
        key, is_same = change.key, was.get("migrationUid") == now.get("migrationUid")
        if was.get("migrationUid") and not is_same and not was.get("completed") and not was.get("failed"):
            yield f"one at a time: {key} begins a migration, and is in another one"
        if not is_same:
            yield from self._hand_over_breaks(change, now)
            return
        yield from self._beginning_breaks(change, was, now)
        if was.get("failed") and not now.get("failed"):
            yield f"failed: of {key} that was said, and is taken back"
        if _has_moved(was) and not _has_moved(now):
            yield f"completed: of {key} that was said, and is taken back"
        at = {launcher.pod_uid: launcher for launcher in self.launchers()}
        source, target = (at.get(now.get(name, "")) for name in ("sourcePodUID", "targetPodUID"))
        if _has_moved(now) and not _has_moved(was) and source is not None and source.is_running_guest:
            yield f"completed: {key} is reported as completed, and QEMU runs at the source"
        if _has_moved(now) and not _has_moved(was) and target is not None and not target.has_all:
            yield f"completed: {key} is reported as completed, and its target never had the complete guest"
        ready = "targetNodeDomainReadyTimestamp"
        if now.get(ready) and not was.get(ready) and target is not None and not target.has_run:
            yield f"ready: {key} is reported as running at the target, and it never has"

    @staticmethod
    def _hand_over_breaks(change: Change, now: Json) -> Iterator[str]:
        status = (change.after or {})["status"]
        source = {now.get("sourcePodUID"): now.get("sourceNode")}
        if now.get("migrationUid") and (status.get("activePods") != source or status.get("phase") != "Running"):
            yield f"hand-over: {change.key} is {status.get('phase')} in {status.get('activePods')}, not in {source}"
        if now.get("targetNode") == now.get("sourceNode") and now.get("migrationUid"):
            yield f"hand-over: {change.key} is to go to the node on which it is"

    @staticmethod
    def _beginning_breaks(change: Change, was: Json, now: Json) -> Iterator[str]:
        begun, begins = was.get("startTimestamp"), now.get("startTimestamp")
        if begun == begins:
            return
        why = {
            "a second time": begun is not None,
            "and it was over": was.get("completed") or was.get("failed"),
            "and it is cancelled": was.get("abortRequested"),
            "and its machine is to end": "deletionTimestamp" in (change.after or {})["metadata"],
        }
        yield from (f"begin: {change.key} begins its migration {text}" for text, applies in why.items() if applies)

    def _migration_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        if phase_of(before) == phase_of(after):
            return
        if phase_of(before) in OVER or (phase_of(after) not in OVER and _rank(after) < _rank(before)):
            yield f"phases: {change.key} went from {phase_of(before)} to {phase_of(after)}"
        if phase_of(after) in OVER:
            self.outcomes.append(phase_of(after))
            yield from self._outcome_breaks(change, after)

    def _outcome_breaks(self, change: Change, after: Json) -> Iterator[str]:
        namespace, name = change.key
        vmi = self._store.find(VMI, type(change.key)(namespace, after["spec"]["vmiName"]))
        moving = {} if vmi is None else moving_of(vmi)
        if vmi is None or moving.get("migrationUid") != after["metadata"]["uid"]:
            return
        is_there = list(vmi["status"].get("activePods") or {}) == [moving.get("targetPodUID")]
        if is_there is not (phase_of(after) == "Succeeded"):
            yield f"outcome: {name} is {phase_of(after)}, and the machine is on {vmi['status'].get('nodeName')}"


def is_let_serve(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any((item["type"], item["status"]) == (UNPAUSED, "True") for item in conditions)


def moving_of(body: Json) -> Json:
    return body.get("status", {}).get("migrationState") or {}


def _has_moved(moving: Json) -> bool:
    return bool(moving.get("completed")) and not moving.get("failed")


def _rank(body: Json) -> int:
    return PHASES.index(phase_of(body))


def phase_of(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))
