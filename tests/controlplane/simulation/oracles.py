# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must never happen (checked after every step) and what must have happened once the faults are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubevirt_api.run_strategies import ALWAYS

from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.phase import RUNNING, is_final, may_move
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import controller_of
from tests.controlplane.simulation.node import BAD_NODE_SELECTOR, Node
from tests.controlplane.simulation.people import INVALID_MEMORY
from tests.controlplane.simulation.store import Change, Json, Store


class Breach(AssertionError):
    """An invariant does not hold. The text names it."""


class Oracles:
    """Reads the store's history as it grows, and the nodes as they are."""

    def __init__(self, store: Store, nodes: Iterable[Node]) -> None:
        self._store = store
        self._nodes = tuple(nodes)
        self._seen = 0
        self._attempts: dict[str, int] = {}
        self._grants: dict[str, dict[str, str]] = {}
        self.phases_seen: Counter[tuple[str, str]] = Counter()

    def check(self) -> None:
        """Raise Breach if something is true that must never be."""
        self._never_two_guests()
        for change in self._store.history[self._seen :]:
            if change.resource == VIRTUAL_MACHINE_INSTANCE:
                self._phases_follow_the_table(change)
                self._grant_is_given_once(change)
            elif change.resource == POD and change.after is not None:
                self._attempt_was_recorded(change)
                self._one_pod_per_run(change)
        self._seen = len(self._store.history)

    def _never_two_guests(self) -> None:
        """I1: at most one guest executes for one VMI name, hence for one VM, on all nodes together."""
        running = Counter(one.vmi for node in self._nodes for one in node.guests())
        twice = [key for key, count in running.items() if count > 1]
        if twice:
            raise Breach(f"I1 never two: {twice[0]} runs {running[twice[0]]} times")

    def _phases_follow_the_table(self, change: Change) -> None:
        """I7: phases follow the graph, final phases are absorbing."""
        if change.after is None or change.before is None:
            return
        if change.before["metadata"]["uid"] != change.after["metadata"]["uid"]:
            return
        before, after = _phase(change.before), _phase(change.after)
        self.phases_seen[before, after] += before != after
        if not may_move(before, after):
            raise Breach(f"I7 phases: {change.key} went from {before or 'none'} to {after or 'none'}")

    def _grant_is_given_once(self, change: Change) -> None:
        """The right to start goes to one Pod of a run, for good."""
        if change.after is None:
            return
        granted = change.after.get("status", {}).get("activePods") or {}
        uid = change.after["metadata"]["uid"]
        old = self._grants.setdefault(uid, granted)
        if not old:
            self._grants[uid] = granted
        elif old != granted:
            raise Breach(f"grant: {change.key} was given to {old} and then to {granted}")
        self._attempts[uid] = max(self._attempts.get(uid, 0), change.after.get("status", {}).get("attempt", 0))

    def _attempt_was_recorded(self, change: Change) -> None:
        """A Pod of attempt n exists only after the VMI's status said n."""
        owner = _owner(change.after or {})
        attempt = change.key.name.rsplit("-", 1)[-1]
        if owner and int(attempt, 36) > self._attempts.get(owner, 0):
            raise Breach(f"attempt: Pod {change.key} was created before its attempt was recorded")

    def _one_pod_per_run(self, change: Change) -> None:
        owner = _owner(change.after or {})
        alive = [key for key, body in self._store.list(POD) if _owner(body) == owner]
        if len(alive) > 1:
            raise Breach(f"one Pod per run: VMI {owner} has {', '.join(map(str, alive))}")


def check_delete(store: Store, resource_kind: str, key: Key) -> None:
    """Raise Breach if virt-controller may not delete this object as it is right now. Called before it happens.

    I3, I10: an instance that belongs to nobody is never stopped; a Pod goes only when its run is over or unwanted.
    """
    if resource_kind == VIRTUAL_MACHINE_INSTANCE.kind:
        vmi = store.find(VIRTUAL_MACHINE_INSTANCE, key)
        if vmi is not None and controller_of(decode_vmi(vmi).metadata) is None:
            raise Breach(f"I3 unasked stop: VMI {key} belongs to nobody and would be deleted")
    if resource_kind == POD.kind:
        pod = store.find(POD, key)
        owner = _owner(pod or {})
        vmi = next(
            (one for _unused, one in store.list(VIRTUAL_MACHINE_INSTANCE) if one["metadata"]["uid"] == owner), None
        )
        if vmi is not None and "deletionTimestamp" not in vmi["metadata"] and not is_final(_phase(vmi)):
            raise Breach(f"I3 unasked stop: Pod {key} would be deleted under a live VMI")


def stuck(store: Store) -> list[str]:
    """List what is not as it should be when nothing moves any more."""
    found = [
        f"{change_kind.kind} {key} is still being deleted"
        for change_kind in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD)
        for key, body in store.list(change_kind)
        if "deletionTimestamp" in body["metadata"]
    ]
    vmis = dict(store.list(VIRTUAL_MACHINE_INSTANCE))
    for key, raw in store.list(VIRTUAL_MACHINE):
        found.extend(f"VM {key}: {text}" for text in _vm_stuck(raw, vmis.get(key)))
    for key, raw in vmis.items():
        found.extend(f"VMI {key}: {text}" for text in _vmi_stuck(raw))
    uids = {body["metadata"]["uid"] for body in vmis.values()}
    found.extend(f"Pod {key} has no VMI" for key, body in store.list(POD) if _owner(body) not in uids)
    return found


def _vm_stuck(raw: Json, raw_vmi: Json | None) -> list[str]:
    vm = decode_vm(raw)
    if vm.metadata.deletion_timestamp is not None or BAD_NODE_SELECTOR in vm.spec.template.spec.node_selector:
        return []
    vmi = decode_vmi(raw_vmi) if raw_vmi is not None else None
    status, word = vm.status, vm.status.printable_status
    if vm.run_strategy == ALWAYS:
        wanted = vmi is not None and vmi.status.phase == RUNNING and word == "Running" and status.ready
        is_invalid = vmi is not None and _is_invalid(vmi)
        return [] if wanted or is_invalid else [f"wants to run, is {word}, instance {vmi and vmi.status.phase}"]
    gone = vmi is None and word == "Stopped" and not status.created and not status.ready
    return [] if gone else [f"wants to be halted, is {word}, instance {vmi and vmi.status.phase}"]


def _vmi_stuck(raw: Json) -> list[str]:
    vmi = decode_vmi(raw)
    if is_final(vmi.status.phase) or _is_invalid(vmi):
        return []
    ready = next((one for one in vmi.status.conditions if one.type == "Ready"), None)
    if vmi.status.phase != RUNNING or ready is None or ready.status != "True":
        return [f"is {vmi.status.phase or 'without phase'}, ready {ready and ready.reason}"]
    return []


def _is_invalid(vmi: VirtualMachineInstance) -> bool:
    return vmi.spec.domain.memory is not None and vmi.spec.domain.memory.guest == INVALID_MEMORY


def _phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))


def _owner(body: Json) -> str:
    owners = body.get("metadata", {}).get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))
