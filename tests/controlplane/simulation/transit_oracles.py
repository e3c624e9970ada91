# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no migration may bring about, judged from outside: on the nodes as they truly are, and on what is written.

While the source's QEMU exists the target's has never run (docs/adr/0016); a guest that goes on has all that it ever
did; and nobody loses it by moving it: only what the play itself has ended may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
)
from tests.controlplane.simulation.breach import Breach
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.ledger import controlling_uid, numbers
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.store import OVER, Change, Json, Store
from tests.controlplane.simulation.transit_guest import MovingLauncher, Stream

VMI, MIGRATION = VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION


class TransitOracles:
    """Reads the history as it grows. ended: UIDs of machines whose guest the play itself has ended."""

    def __init__(self, store: Store, nodes: Iterable[Node], streams: list[Stream], ended: set[str]) -> None:
        self._store, self._nodes, self._streams, self._ended = store, tuple(nodes), streams, ended
        self._seen = 0
        self._begun: set[str] = set()
        """UIDs of machines of which a guest has run."""
        self._executing: set[str] = set()
        """UIDs of Pods in which one did when it was looked last."""
        self._sent = 0
        self.outcomes: list[str] = []
        """How migrations ended."""

    def check(self) -> None:
        """Raise Breach if something is true that must never be."""
        new, self._seen = self._store.history[self._seen :], len(self._store.history)
        for text in (*self._by_truth(), *(said for one in new for said in self._by_change(one))):
            raise Breach(f"transit: {text}")
        for node in self._nodes:
            node.endings.clear()

    def launchers(self) -> list[MovingLauncher]:
        there = (one for node in self._nodes for one in node.launchers.values())
        return [one for one in there if isinstance(one, MovingLauncher)]

    def _by_truth(self) -> Iterator[str]:
        launchers = self.launchers()
        executing = [one for one in launchers if one.is_executing]
        for one in executing:
            self._begun.add(one.vmi_uid)
            if sum(each.vmi_uid == one.vmi_uid for each in executing) > 1:
                yield f"never two: {one.vmi} has run in two QEMUs that exist"
            if one.pod_uid not in self._executing and one.is_old:
                yield f"going back: the guest of {one.vmi} goes on as it was before it ran on elsewhere"
        self._executing = {one.pod_uid for one in executing}
        for stream in self._streams[self._sent :]:
            self._sent += 1
            yield from self._begins_unwritten(stream)
        kept = {one.vmi_uid for one in launchers if one.has_the_guest}
        for key, vmi in self._store.list(VMI):
            uid = vmi["metadata"]["uid"]
            is_to_run = "deletionTimestamp" not in vmi["metadata"] and not is_final(_phase(vmi))
            if uid in self._begun and uid not in kept and is_to_run and uid not in self._ended:
                yield f"lost: the guest of {key} is nowhere, and nobody but the control plane has ended it"

    def _begins_unwritten(self, stream: Stream) -> Iterator[str]:
        vmi = self._store.find(VMI, stream.source.vmi)
        moving = {} if vmi is None else _moving(vmi)
        if moving.get("targetPodUID") != stream.target.pod_uid or not moving.get("startTimestamp"):
            yield f"begin: {stream.source.vmi} is sent, and it is not written that this begins"

    def _by_change(self, change: Change) -> Iterator[str]:
        if change.resource == VMI and change.after is not None and change.before is not None:
            yield from self._vmi_breaks(change, change.before, change.after)
        if change.resource == MIGRATION and change.after is not None and change.before is not None:
            yield from self._migration_breaks(change, change.before, change.after)

    def _vmi_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        uid, key = after["metadata"]["uid"], change.key
        if is_final(_phase(after)) and not is_final(_phase(before)):
            is_wanted = "deletionTimestamp" in after["metadata"]
            if not is_wanted and uid not in self._ended:
                yield f"lost: {key} is {_phase(after)}, and nobody has ended its guest"
            if any(one.vmi_uid == uid and one.has_the_guest for one in self.launchers()):
                yield f"not dead: {key} is {_phase(after)}, and its guest is there"
        was, now = (one.get("status", {}).get("activePods") or {} for one in (before, after))
        if was and was != now:
            yield from self._commit_breaks(change, before, after)
        yield from self._state_breaks(change, _moving(before), _moving(after))

    def _commit_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        """The run is given away once for each migration, to its target, and never by a source that may run it."""
        was, moving, status = before["status"]["activePods"], _moving(after), after["status"]
        given = {moving.get("targetPodUID"): moving.get("targetNode")}
        if status.get("activePods") != given or status.get("nodeName") != moving.get("targetNode"):
            yield f"commit: {change.key} is given to {status.get('activePods')}, and its migration goes to {given}"
        if numbers(after)[1] != numbers(before)[1] + 1:
            yield f"commit: {change.key} went on from epoch {numbers(before)[1]} to {numbers(after)[1]}"
        if any(one.pod_uid in was and one.is_running_guest for one in self.launchers()):
            yield f"commit: {change.key} is given away, and QEMU is there at the source"
        target = [one for one in self.launchers() if one.pod_uid == moving.get("targetPodUID")]
        if any(one.is_old for one in target):
            yield f"commit: {change.key} is given to a QEMU that has what was before"

    def _state_breaks(self, change: Change, was: Json, now: Json) -> Iterator[str]:
        key, is_same = change.key, was.get("migrationUid") == now.get("migrationUid")
        if was.get("migrationUid") and not is_same and not was.get("completed") and not was.get("failed"):
            yield f"one at a time: {key} begins a migration, and is in another one"
        if not is_same:
            return
        if was.get("failed") and not now.get("failed"):
            yield f"failed: of {key} that was said, and is taken back"
        if now.get("startTimestamp") and not was.get("startTimestamp") and was.get("completed"):
            yield f"begin: {key} begins a migration that was over"
        at = {one.pod_uid: one for one in self.launchers()}
        source, target = (at.get(now.get(name, "")) for name in ("sourcePodUID", "targetPodUID"))
        if _has_moved(now) and not _has_moved(was) and source is not None and source.is_running_guest:
            yield f"completed: it is said of {key}, and QEMU is there at the source"
        ready = "targetNodeDomainReadyTimestamp"
        if now.get(ready) and not was.get(ready) and target is not None and not target.has_run:
            yield f"ready: it is said that {key} goes on at the target, and it never has"

    def _migration_breaks(self, change: Change, before: Json, after: Json) -> Iterator[str]:
        if _phase(before) == _phase(after):
            return
        if _phase(before) in OVER:
            yield f"phases: {change.key} went from {_phase(before)} to {_phase(after)}"
        if _phase(after) in OVER:
            self.outcomes.append(_phase(after))
            yield from self._outcome_breaks(change, after)

    def _outcome_breaks(self, change: Change, after: Json) -> Iterator[str]:
        namespace, name = change.key
        vmi = self._store.find(VMI, type(change.key)(namespace, after["spec"]["vmiName"]))
        moving = {} if vmi is None else _moving(vmi)
        if vmi is None or moving.get("migrationUid") != after["metadata"]["uid"]:
            return
        is_there = list(vmi["status"].get("activePods") or {}) == [moving.get("targetPodUID")]
        if is_there is not (_phase(after) == "Succeeded"):
            yield f"outcome: {name} is {_phase(after)}, and the machine is on {vmi['status'].get('nodeName')}"


class TransitRest:
    """What must be true when all faults have ceased and everybody has come to rest."""

    def __init__(self, store: Store, nodes: Iterable[Node], oracles: TransitOracles) -> None:
        self._store, self._nodes, self._oracles = store, tuple(nodes), oracles

    def stuck(self) -> list[str]:
        """List what is not as it should be."""
        found = [
            f"migration {key} is {_phase(body) or 'new'}{' and going' * ('deletionTimestamp' in body['metadata'])}"
            for key, body in self._store.list(MIGRATION)
            if _phase(body) not in OVER or "deletionTimestamp" in body["metadata"]
        ]
        for key, vmi in self._store.list(VMI):
            found += [f"{key}: {said}" for said in self._untrue(vmi)]
        owners = {vmi["metadata"]["uid"] for _unused, vmi in self._store.list(VMI)}
        pods = {body["metadata"]["uid"] for _unused, body in self._store.list(POD)}
        found += [f"Pod {key} is left" for key, pod in self._store.list(POD) if controlling_uid(pod) not in owners]
        found += [f"a launcher of {one.vmi} is left" for one in self._oracles.launchers() if one.pod_uid not in pods]
        return found

    def _untrue(self, vmi: Json) -> Iterator[str]:
        status, uid = vmi.get("status", {}), vmi["metadata"]["uid"]
        if "deletionTimestamp" in vmi["metadata"]:
            yield "it is still being deleted"
            return
        if is_final(_phase(vmi)):
            return
        if _phase(vmi) != "Running":
            yield f"it is {_phase(vmi) or 'new'}"
        moving = _moving(vmi)
        if moving.get("migrationUid") and not (moving.get("completed") or moving.get("failed")):
            yield "it is in a migration"
        mine = [(node, one) for node in self._nodes for one in node.launchers.values() if one.vmi_uid == uid]
        there = [(node.name, one.pod_uid) for node, one in mine if one.is_running_guest]
        said = [(node, pod) for pod, node in (status.get("activePods") or {}).items()]
        if there != said or [status.get("nodeName")] != [node for node, _unused in there]:
            yield f"its guest is in {there}, and it is said to be in {said}"
        yield from self._stands_still([one for _unused, one in mine])
        pods = [key.name for key, pod in self._store.list(POD) if controlling_uid(pod) == uid]
        if len(pods) != 1:
            yield f"its Pods are {', '.join(pods) or 'none'}"

    @staticmethod
    def _stands_still(launchers: list[Launcher]) -> Iterator[str]:
        for one in launchers:
            if one.is_running_guest and not one.is_going_on:
                yield f"its guest is {one.state}"


def _moving(body: Json) -> Json:
    return body.get("status", {}).get("migrationState") or {}


def _has_moved(moving: Json) -> bool:
    return bool(moving.get("completed")) and not moving.get("failed")


def _phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))
