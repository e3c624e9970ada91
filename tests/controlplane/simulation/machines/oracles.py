# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invariants, checked after every step on its changes and on the true state of the nodes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.phase import FAILED, RUNNING, is_allowed_transition, is_final
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.ledger import Ledger, controlling_uid, numbers
from tests.controlplane.simulation.machines import causes
from tests.controlplane.simulation.machines.causes import phase
from tests.controlplane.simulation.machines.truth import says_why
from tests.controlplane.simulation.node import Node
from tests.support.breach import Breach
from tests.support.store import Change, Json, Store

OURS = ("controller", "handler")
RATE_SECONDS = 60.0
CREATES_PER_MINUTE = 8
"""Pods of one name, within one simulated minute."""


class Oracles:
    """Follows the history of the store, and reads the true state of the nodes."""

    def __init__(self, store: Store, nodes: Iterable[Node], ledger: Ledger) -> None:
        self._store = store
        self._nodes = tuple(nodes)
        self._ledger = ledger
        self._seen = 0
        self._numbers: dict[str, tuple[int, int]] = {}
        """attempt and epoch by VMI UID."""
        self._grants: dict[str, dict[str, str]] = {}
        self._makers: dict[str, str] = {}
        """The process that created a Pod, by UID."""
        self._strays: set[str] = set()
        """UIDs of Pods of former attempts, created by a former leader: they cannot be granted."""
        self._beside_another: set[str] = set()
        """UIDs of Pods created while two processes acted as the leader."""
        self._created: dict[str, deque[float]] = {}
        self._guests: set[tuple[str, str]] = set()
        self.phases_seen: Counter[str] = Counter()
        self._ran: set[str] = set()
        """UIDs of VMIs reported as Running."""
        self.is_one_leader_since = 0
        """The version of the store since which only one virt-controller acts."""
        self.now = 0.0

    def check(self, view: View) -> None:
        """Raise Breach when an invariant is violated. view: the state of the writer of this step."""
        new, self._seen = self._store.history[self._seen :], len(self._store.history)
        problems = [
            self._guests_break(view),
            self._endings_break(),
            self._idle_writes_break(),
            self._pauses_break(),
            *(self._change_breaks(item, view) for item in new),
        ]
        for text in problems:
            if text:
                raise Breach(text)

    def _idle_writes_break(self) -> str | None:
        """None of our processes writes a value that is already there."""
        idle, self._store.idle_writes = self._store.idle_writes, []
        return next(
            (
                f"write rate: {actor} patches {what} with its own value: compare first, and name the resource_version"
                for actor, what in idle
                if actor in OURS
            ),
            None,
        )

    def _pauses_break(self) -> str | None:
        """A guest paused by a user resumes only on a user's request."""
        there = (item for node in self._nodes for item in node.launchers.values())
        overruled = next((item for item in there if item.is_overruled), None)
        return overruled and f"pause: {overruled.vmi} was resumed, and a user had paused it"

    def _endings_break(self) -> str | None:
        """I3: virt-handler ends a guest only for a cause in an object."""
        for node in self._nodes:
            endings, node.endings = node.endings, []
            for vmi_uid, pod_uid in endings:
                why = causes.guest_ended(vmi_uid, pod_uid, self._store)
                if why:
                    return f"I3 unasked stop: {why}"
        return None

    def _guests_break(self, view: View) -> str | None:
        """I1: at most one guest executes for one VMI name, hence for one VM, on all nodes together; each with a
        grant.
        """
        running = [item for node in self._nodes for item in node.launchers.values() if item.is_running_guest]
        if not running:
            self._guests = set()
            return None
        counted = Counter(item.vmi for item in running)
        twice = [key for key, count in counted.items() if count > 1]
        if twice:
            return f"I1 never two: {twice[0]} runs {counted[twice[0]]} times"
        known, self._guests = self._guests, {(item.vmi_uid, item.pod_uid) for item in running}
        return next(
            filter(
                None, (self._start_breaks(item, view) for item in running if (item.vmi_uid, item.pod_uid) not in known)
            ),
            None,
        )

    def _start_breaks(self, launcher: Launcher, view: View) -> str | None:
        """A guest is started only in the Pod that was granted its run, and once."""
        if list(self._grants.get(launcher.vmi_uid, {})) != [launcher.pod_uid]:
            return f"grant: {launcher.vmi} is started in a Pod that was not granted the run"
        if not causes.was_granted(launcher.vmi, launcher.vmi_uid, self._store, view):
            return f"grant: {launcher.vmi} is started after its VMI took the start back"
        # When a guest ends together with its libvirtd before it was observed, nothing shows that it ran.
        if launcher.has_run and not (launcher.has_ended_unseen and launcher.vmi_uid not in self._ran):
            return f"once per run: {launcher.vmi} is started again after its guest had ended"
        return None

    def _change_breaks(self, change: Change, view: View) -> str | None:
        if change.resource == VIRTUAL_MACHINE_INSTANCE:
            return self._vmi_breaks(change, view)
        if change.resource == POD:
            return self._pod_breaks(change, view)
        if change.resource == VIRTUAL_MACHINE:
            return self._vm_breaks(change, view)
        return None

    def _vm_breaks(self, change: Change, view: View) -> str | None:
        self._ledger.take_vm(change)
        if change.actor == "controller":
            lost = causes.overwritten(change, view.vm)
            if lost:
                return f"I9 lost update: {lost}"
            if change.after is None and view.since >= self.is_one_leader_since:
                return self._let_go_too_early(change)
        return None

    def _let_go_too_early(self, change: Change) -> str | None:
        uid = (change.before or {})["metadata"]["uid"]
        remaining = [key for key, item in self._store.list(VIRTUAL_MACHINE_INSTANCE) if controlling_uid(item) == uid]
        return f"I6 finalizer: VM {change.key} is gone before its instance" if remaining else None

    def _vmi_breaks(self, change: Change, view: View) -> str | None:
        complaint = self._ledger.take_vmi(change, view.vm, has_pod=self._has_pod(change.after))
        if complaint:
            return f"I2 unasked start: {change.key}: {complaint}"
        return (
            self._phase_breaks(change)
            or self._grant_breaks(change)
            or self._numbers_break(change)
            or self._vmi_write_breaks(change, view)
            or self._end_breaks(change, view)
        )

    def _has_pod(self, vmi: Json | None) -> bool:
        """Whether the Pod that was granted the run exists and is not evicted; True without a grant."""
        granted = {} if vmi is None else vmi.get("status", {}).get("activePods") or {}
        pods = (pod for _unused, pod in self._store.list(POD))
        return not granted or any(pod["metadata"]["uid"] in granted and not causes.is_evicted(pod) for pod in pods)

    def _vmi_write_breaks(self, change: Change, view: View) -> str | None:
        if change.actor not in OURS:
            return None
        lost = causes.overwritten(change, view.vmi) if change.after is not None else None
        if lost:
            return f"I9 lost update: {lost}"
        if change.actor == "controller" and causes.begins_to_go(change):
            unasked = causes.vmi_deleted(change, view)
            return f"I3 unasked stop: {unasked}" if unasked else None
        before, after = change.before, change.after
        if before is not None and after is not None and controlling_uid(before) is None and controlling_uid(after):
            wrong = causes.adopted(change, self._store, view)
            return f"I10 adoption: {wrong}" if wrong else None
        return None

    def _phase_breaks(self, change: Change) -> str | None:
        """I7: phases follow the graph, final phases are absorbing; Running needs a started guest."""
        before, after = change.before, change.after
        if before is None or after is None or phase(before) == phase(after):
            return None
        self.phases_seen[f"{phase(before) or 'none'} -> {phase(after)}"] += 1
        if phase(after) == RUNNING:
            self._ran.add(after["metadata"]["uid"])
        if not is_allowed_transition(phase(before), phase(after)):
            return f"I7 phases: {change.key} went from {phase(before) or 'none'} to {phase(after) or 'none'}"
        if phase(after) == FAILED and not says_why(after):
            return f"I7 phases: {change.key} has failed, and no condition says why"
        if phase(after) == RUNNING and not self._was_started(after["metadata"]["uid"]):
            return f"I7 phases: {change.key} is reported as Running, and its guest was never started"
        return None

    def _was_started(self, vmi_uid: str) -> bool:
        granted = self._grants.get(vmi_uid, {})
        launchers = [
            launcher
            for node in self._nodes
            for launcher in node.launchers.values()
            if launcher.vmi_uid == vmi_uid and launcher.pod_uid in granted
        ]
        return not launchers or any(launcher.has_run for launcher in launchers)

    def _end_breaks(self, change: Change, view: View) -> str | None:
        """I8: no VMI is final or gone while its guest runs anywhere; I6: nor gone while it has a Pod."""
        before, after = change.before or {}, change.after
        if after is not None and (not is_final(phase(after)) or is_final(phase(before))):
            return None
        uid = (after or before)["metadata"]["uid"]
        if any(guest.vmi_uid == uid for node in self._nodes for guest in node.guests()):
            return f"I8 not dead: {change.key} is {'gone' if after is None else phase(after)}, and its guest runs"
        if after is None and change.actor == "controller" and view.since >= self.is_one_leader_since:
            pods = [key for key, pod in self._store.list(POD) if controlling_uid(pod) == uid and self._was_seen(pod)]
            if pods:
                return f"I6 finalizer: VMI {change.key} goes before its Pod {pods[0]}"
        return None

    def _was_seen(self, pod: Json) -> bool:
        """Whether the process that removes the VMI's finalizer can know of a Pod.

        The create of a former leader may arrive after the next leader has read that there is no such Pod. That Pod has
        no grant, and the garbage collector deletes it.
        """
        uid = pod["metadata"]["uid"]
        return uid not in self._beside_another or uid in self._grants.get(controlling_uid(pod) or "", {})

    def _grant_breaks(self, change: Change) -> str | None:
        """A run is granted once, to one of our Pods, on the node where it is."""
        after = change.after
        if after is None:
            return None
        granted, uid = after.get("status", {}).get("activePods") or {}, after["metadata"]["uid"]
        old = self._grants.get(uid) or {}
        if old == granted:
            return None
        if old:
            return f"grant: {change.key} was given to {old} and then to {granted}"
        self._grants[uid] = granted
        for pod_uid, node in granted.items():
            wrong = self._grantee_breaks(after, pod_uid, node)
            if wrong:
                return f"grant: {change.key} is given to {wrong}"
        return None

    def _grantee_breaks(self, vmi: Json, pod_uid: str, node: str) -> str | None:
        if self._makers.get(pod_uid) != "controller":
            return "a Pod that virt-controller did not make"
        pods = [(key, pod) for key, pod in self._store.list(POD) if pod["metadata"]["uid"] == pod_uid]
        for key, pod in pods:
            if controlling_uid(pod) != vmi["metadata"]["uid"] or pod["spec"].get("nodeName") != node:
                return f"Pod {key}, which is not its own, or not there"
            if int(key.name.rsplit("-", 1)[-1]) != numbers(vmi)[0]:
                return f"Pod {key}, which is of another attempt"
        return None

    def _numbers_break(self, change: Change) -> str | None:
        """attempt and epoch never go back, and never skip a number."""
        if change.after is None:
            return None
        uid, now = change.after["metadata"]["uid"], numbers(change.after)
        old = self._numbers.get(uid, (0, 0))
        self._numbers[uid] = (max(old[0], now[0]), max(old[1], now[1]))
        if any(after > before + 1 for before, after in zip(old, now, strict=True)):
            return f"attempt: {change.key} went on from {old} to {now}"
        return f"attempt: {change.key} went back from {old} to {now}" if now[0] < old[0] or now[1] < old[1] else None

    def _pod_breaks(self, change: Change, view: View) -> str | None:
        if change.before is None and change.after is not None:
            self._makers[change.after["metadata"]["uid"]] = change.actor
            return self._creation_breaks(change, change.after, view) if change.actor == "controller" else None
        vmi = causes.vmi_of(change.before or {}, self._store) if causes.is_evicted(change.after) else None
        if vmi is not None and "deletionTimestamp" not in vmi["metadata"] and is_final(phase(vmi)):
            self._ledger.lost_pod_after_its_end(vmi["metadata"]["uid"])
        if change.actor == "controller" and causes.begins_to_go(change):
            unasked = causes.pod_deleted(change, self._store)
            return f"I3 unasked stop: {unasked}" if unasked else None
        return None

    def _creation_breaks(self, change: Change, pod: Json, view: View) -> str | None:
        """The Pod of attempt n exists only after the VMI's status has n; one at a time; with a finalizer; with a
        back-off.

        A former leader may create the Pod of the former attempt again, before or after the next one is created.
        """
        owner = controlling_uid(pod) or ""
        attempt, recorded = int(change.key.name.rsplit("-", 1)[-1]), self._numbers.get(owner, (0, 0))[0]
        if attempt > recorded:
            return f"attempt: Pod {change.key} was created before its attempt was recorded"
        if view.since < self.is_one_leader_since:
            self._beside_another.add(pod["metadata"]["uid"])
            if attempt < recorded:
                self._strays.add(pod["metadata"]["uid"])
        alive = [key for key, body in self._store.list(POD) if controlling_uid(body) == owner and self._counts(body)]
        if len(alive) > 1:
            return f"one Pod per run: VMI {owner} has {', '.join(map(str, alive))}"
        vmi = causes.vmi_of(pod, self._store)
        if vmi is not None and VMI_FINALIZER not in vmi["metadata"].get("finalizers", ()):
            return f"I6 finalizer: Pod {change.key} was created for a VMI without a finalizer"
        return self._creates_too_often(str(change.key))

    def _counts(self, pod: Json) -> bool:
        return pod["metadata"]["uid"] not in self._strays

    def _creates_too_often(self, key: str) -> str | None:
        times = self._created.setdefault(key, deque(maxlen=CREATES_PER_MINUTE))
        is_storm = len(times) == CREATES_PER_MINUTE and self.now - times[0] < RATE_SECONDS
        times.append(self.now)
        return f"write rate: Pod {key} was made {CREATES_PER_MINUTE} times within a minute" if is_storm else None
