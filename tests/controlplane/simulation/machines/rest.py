# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold once the faults are over and everything has come to rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubevirt_api.names import ROLE

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.phase import RUNNING, UNKNOWN, is_final
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from tests.controlplane.simulation.agent import NAME
from tests.controlplane.simulation.launcher import STALLED, Launcher
from tests.controlplane.simulation.ledger import Account, Ledger, controlling_uid
from tests.controlplane.simulation.listing import is_listed
from tests.controlplane.simulation.machines.causes import vmi_of
from tests.controlplane.simulation.machines.people import INVALID_MEMORY
from tests.controlplane.simulation.machines.truth import condition, untrue_of_vm, untrue_of_vmi
from tests.controlplane.simulation.node import BAD_NODE_SELECTOR, NO_KERNEL, Node
from tests.support.store import Json, Store


class Rest:
    """Judges the state at rest. dead: the node that is unreachable and not declared out of service."""

    def __init__(self, store: Store, nodes: Iterable[Node], ledger: Ledger) -> None:
        self._store = store
        self._nodes = tuple(nodes)
        self._ledger = ledger
        self.dead: Node | None = None

    def stuck(self) -> list[str]:
        """Return what is wrong when nothing changes any more."""
        self._held = {key for key, raw in self._store.list(VIRTUAL_MACHINE_INSTANCE) if self._is_held(raw)}
        problems = [
            f"the guest of {guest.vmi} is paused"
            for node in self._nodes
            for guest in node.guests()
            if guest.state == STALLED and node is not self.dead and not node.is_unreachable and not self._rests(guest)
        ]
        problems += self._going() + self._unproven() + self._leftovers() + self._wrongly_listed()
        vmis = dict(self._store.list(VIRTUAL_MACHINE_INSTANCE))
        for key, raw in self._store.list(VIRTUAL_MACHINE):
            if key not in self._held:
                problems.extend(f"VM {key}: {text}" for text in self._vm(raw, vmis.get(key)))
                if "deletionTimestamp" not in raw["metadata"]:
                    problems.extend(f"VM {key} {text}" for text in untrue_of_vm(raw, vmis.get(key)))
        for key, raw in vmis.items():
            if key not in self._held:
                problems.extend(f"VMI {key}: {text}" for text in self._vmi(raw))
                problems.extend(f"VMI {key} {text}" for text in untrue_of_vmi(raw))
        return problems

    def _rests(self, guest: Launcher) -> bool:
        """Whether a user has paused a guest according to its VMI, and has not resumed it."""
        if guest.is_to_go_on:
            return False
        raw = dict(self._store.list(VIRTUAL_MACHINE_INSTANCE)).get(guest.vmi)
        paused = None if raw is None else conditions.find(decode_vmi(raw).status.conditions, "Paused")
        return paused is not None and paused.reason == "PausedByUser"

    def restless(self) -> set[str]:
        """Return names that may still have work: failing starts with retries; guests with silent agents, or frozen
        until their timeout.
        """
        reported = {
            guest.vmi.name
            for node in self._nodes
            for guest in node.guests()
            if guest.agent is not None and guest.agent.is_silent
        }
        return reported | {
            key.name
            for resource in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
            for key, raw in self._store.list(resource)
            if _is_hopeless(raw) or key in self._held or "fsFreezeStatus" in raw.get("status", {})
        }

    def _is_held(self, vmi: Json) -> bool:
        """Whether the guest of a VMI may run where nothing can look: then it stays as it is."""
        if self.dead is None:
            return False
        uid, name = vmi["metadata"]["uid"], self.dead.name
        granted = name in (vmi.get("status", {}).get("activePods") or {}).values()
        if granted and not is_final(vmi.get("status", {}).get("phase", "")):
            return True
        pods = [pod for _unused, pod in self._store.list(POD) if controlling_uid(pod) == uid]
        return any(pod["spec"].get("nodeName") == name for pod in pods)

    def _unproven(self) -> list[str]:
        """A run whose Pod was removed from a dead node is Unknown, and its status names the missing proof."""
        problems = []
        pods = {pod["metadata"]["uid"] for _unused, pod in self._store.list(POD)}
        for key in self._held:
            vmi = decode_vmi(self._store.get(VIRTUAL_MACHINE_INSTANCE, key))
            if not vmi.status.active_pods or set(vmi.status.active_pods) & pods:
                continue
            reported = [
                condition.message
                for condition in vmi.status.conditions
                if "Node" in condition.message or "node" in condition.message
            ]
            if vmi.status.phase != UNKNOWN or not reported:
                problems.append(
                    f"VMI {key} may run on a dead node, is {vmi.status.phase} and says {reported or 'nothing'}"
                )
        return problems

    def _wrongly_listed(self) -> list[str]:
        """All nodes are schedulable but those with a silent virt-handler."""
        silent = {node.name for node in self._nodes if node.is_unreachable}
        return [
            f"Node {key} {'is schedulable without a virt-handler' if is_listed(body) else 'is not schedulable'}"
            for key, body in self._store.list(NODE)
            if is_listed(body) == (key.name in silent)
        ]

    def _going(self) -> list[str]:
        return [
            f"{kind.kind} {key} is still being deleted"
            for kind in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD)
            for key, body in self._store.list(kind)
            if "deletionTimestamp" in body["metadata"] and not self._waits(kind.kind, key, body)
        ]

    def _waits(self, kind: str, key: Key, body: Json) -> bool:
        if kind != POD.kind:
            return key in self._held
        return self.dead is not None and body["spec"].get("nodeName") == self.dead.name

    def _leftovers(self) -> list[str]:
        """I5: no Pod without its VMI, no launcher without its Pod, no guest without its VMI."""
        problems = [
            f"Pod {key} has no VMI"
            for key, body in self._store.list(POD)
            if "squatter" not in body["metadata"].get("annotations", {})
            and vmi_of(body, self._store) is None
            and not self._waits(POD.kind, key, body)
        ]
        pods = {body["metadata"]["uid"] for _unused, body in self._store.list(POD)}
        over = {
            vmi["metadata"]["uid"]
            for _unused, vmi in self._store.list(VIRTUAL_MACHINE_INSTANCE)
            if is_final(vmi.get("status", {}).get("phase", ""))
        }
        for node in self._nodes:
            if not node.is_unreachable:
                problems += [
                    f"I5 {node.name} runs the launcher of {launcher.vmi}, whose run is over"
                    for launcher in node.launchers.values()
                    if launcher.is_up and launcher.vmi_uid in over
                ]
                problems += [
                    f"I5 {node.name} keeps the launcher of {launcher.vmi}"
                    for uid, launcher in node.launchers.items()
                    if uid not in pods
                ]
        return problems

    def _vm(self, raw: Json, raw_vmi: Json | None) -> list[str]:
        vm = decode_vm(raw)
        if vm.metadata.deletion_timestamp is not None:
            return []
        vmi = decode_vmi(raw_vmi) if raw_vmi is not None else None
        account = self._ledger.accounts[vm.metadata.uid]
        problems = []
        if raw_vmi is not None and controlling_uid(raw_vmi) is None:
            problems.append("an instance of its name has no owner")
        if vm.status.state_change_requests and not _is_hopeless(raw):
            problems.append(f"a request is neither done nor dropped: {vm.status.state_change_requests}")
        if account.owed_stop is not None and vmi is not None and vmi.metadata.uid == account.owed_stop:
            problems.append("a stop was accepted, and the instance is there")
        if account.owed_after is not None:
            problems.append("a start was accepted, and no run began")
        return problems + self._as_wanted(vm, vmi, account)

    def _as_wanted(self, vm: VirtualMachine, vmi: VirtualMachineInstance | None, account: Account) -> list[str]:
        """Compare with the strategy, and with the history where that decides."""
        wanted = {"Always": True, "Halted": False}.get(vm.run_strategy, account.must_run)
        status, is_alive = vm.status, vmi is not None and not is_final(vmi.status.phase)
        now = f"is {status.printable_status}, instance {vmi and vmi.status.phase}"
        if wanted is True and (vmi is None or not _may_run(vmi)) and not self._is_blocked(vm):
            return [f"wants to run ({vm.run_strategy}), {now}"]
        if wanted is False and vm.run_strategy == "Halted" and vmi is not None:
            return [f"wants to be halted, {now}"]
        if wanted is False and is_alive:
            return [f"is not to run ({vm.run_strategy}), {now}"]
        if vmi is None and (
            status.created or status.ready or status.printable_status not in ("Stopped", "CrashLoopBackOff")
        ):
            return [f"has no instance, and says {status.printable_status}"]
        if vmi is not None and vmi.status.phase == RUNNING:
            paused = conditions.find(vmi.status.conditions, "Paused")
            stands_still = paused is not None and paused.reason == "PausedByUser"
            rests = ("Paused", False) if stands_still else ("Running", True)
            return [] if (status.printable_status, status.ready) == rests else [f"runs, and {now}"]
        return []

    def _vmi(self, raw: Json) -> list[str]:
        vmi = decode_vmi(raw)
        if is_final(vmi.status.phase) or _is_hopeless(raw) or self._is_squatted(vmi):
            return []
        running = [item for node in self._nodes for item in node.guests() if item.vmi_uid == vmi.metadata.uid]
        ready = next((item for item in vmi.status.conditions if item.type == "Ready"), None)
        if vmi.status.phase == RUNNING and len(running) != 1:
            return ["is Running, and no guest is"]
        if running and (untrue := next(_untrue_of_agent(raw, running[0]), None)):
            return [untrue]
        is_ready = ready is not None and (ready.status == "True" or ready.reason == "Paused")
        if vmi.status.phase != RUNNING or not is_ready:
            return [f"is {vmi.status.phase or 'without phase'}, ready {ready and ready.reason}"]
        pods = [pod for _unused, pod in self._store.list(POD) if controlling_uid(pod) == vmi.metadata.uid]
        is_marked = all(ROLE in pod["metadata"].get("labels", {}) for pod in pods)
        return [] if is_marked else ["runs in a Pod without our label, by which Pods are watched"]

    def _is_blocked(self, vm: VirtualMachine) -> bool:
        raw = self._store.find(VIRTUAL_MACHINE, Key(vm.metadata.namespace, vm.metadata.name))
        if raw is None or _is_hopeless(raw):
            return True
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, Key(vm.metadata.namespace, vm.metadata.name))
        return vmi is not None and (_is_hopeless(vmi) or self._is_squatted(decode_vmi(vmi)))

    def _is_squatted(self, vmi: VirtualMachineInstance) -> bool:
        tail = vmi.metadata.uid.replace("-", "")[:8]
        return any(
            tail in key.name and "squatter" in pod["metadata"].get("annotations", {})
            for key, pod in self._store.list(POD)
        )


def _may_run(vmi: VirtualMachineInstance) -> bool:
    return vmi.status.phase == RUNNING


def _is_hopeless(raw: Json) -> bool:
    """Whether a VM or VMI can never run."""
    spec = raw["spec"].get("template", {}).get("spec") or raw["spec"]
    selector = spec.get("nodeSelector") or {}
    memory = (spec.get("domain", {}).get("memory") or {}).get("guest")
    return BAD_NODE_SELECTOR in selector or NO_KERNEL in selector or memory == INVALID_MEMORY


def _untrue_of_agent(vmi: Json, guest: Launcher) -> Iterator[str]:
    """Return what the VMI of a running guest reports wrongly about its agent at rest, and a freeze that has not
    ended.
    """
    status = vmi["status"]
    reported = condition(vmi, "AgentConnected").get("status") == "True"
    if reported is (guest.agent is None):
        yield f"says AgentConnected {reported}, and the channel is {'closed' if reported else 'open'}"
        return
    if guest.agent is None:
        stale = [item for item in ("guestOSInfo", "fsFreezeStatus") if status.get(item)]
        if stale:
            yield f"says {stale[0]} {status[stale[0]]}, and there is no agent"
        return
    if guest.agent.is_silent or not guest.is_going_on:
        return
    if guest.is_frozen:
        yield "is frozen"
    if (status.get("fsFreezeStatus") == "frozen") is not guest.is_frozen:
        yield f"says fsFreezeStatus {status.get('fsFreezeStatus')}, and it is {'' if guest.is_frozen else 'not '}frozen"
    if not guest.is_frozen and (status.get("guestOSInfo") or {}).get("name") != NAME:
        yield f"says guestOSInfo {status.get('guestOSInfo')}, and its agent says more"
