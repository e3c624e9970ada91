# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The required state of migrating machines after all faults have ended, and what must not take long then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubevirt_api.names import VCPUS

from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import POD
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.ledger import controlling_uid
from tests.controlplane.simulation.migrations.oracles import (
    MIGRATION,
    VMI,
    MigrationOracles,
    is_let_serve,
    moving_of,
    phase_of,
)
from tests.controlplane.simulation.node import Node
from tests.support.store import OVER, Json, Store


class MigrationRest:
    """What must hold at rest after all faults have ended."""

    def __init__(self, store: Store, nodes: Iterable[Node], oracles: MigrationOracles) -> None:
        self._store, self._nodes, self._oracles = store, tuple(nodes), oracles

    def stuck(self) -> list[str]:
        """Return what is wrong."""
        problems = [
            f"migration {key} is {phase_of(body) or 'new'}{' and going' * ('deletionTimestamp' in body['metadata'])}"
            for key, body in self._store.list(MIGRATION)
            if phase_of(body) not in OVER or "deletionTimestamp" in body["metadata"]
        ]
        for key, vmi in self._store.list(VMI):
            problems += [f"{key}: {message}" for message in self._untrue(vmi)]
        owners = {vmi["metadata"]["uid"] for _unused, vmi in self._store.list(VMI)}
        pods = {body["metadata"]["uid"] for _unused, body in self._store.list(POD)}
        problems += [f"Pod {key} is left" for key, pod in self._store.list(POD) if controlling_uid(pod) not in owners]
        problems += [
            f"a launcher of {launcher.vmi} is left"
            for launcher in self._oracles.launchers()
            if launcher.pod_uid not in pods
        ]
        return problems

    def cancelled(self) -> list[str]:
        """Return cancelled migrations that are not over."""
        return [
            f"cancel: {key} is cancelled, and not over"
            for key, body in self._store.list(MIGRATION)
            if "deletionTimestamp" in body["metadata"] and phase_of(body) not in OVER
        ]

    def left_at_targets(self) -> list[str]:
        """Return QEMUs at the target of failed migrations."""
        problems = []
        for key, vmi in self._store.list(VMI):
            moving = moving_of(vmi)
            at = [item for item in self._oracles.launchers() if item.pod_uid == moving.get("targetPodUID")]
            if moving.get("failed") and any(item.is_running_guest for item in at):
                problems.append(f"left: the migration of {key} has failed, and QEMU is there at its target")
        return problems

    def _untrue(self, vmi: Json) -> Iterator[str]:
        status, uid = vmi.get("status", {}), vmi["metadata"]["uid"]
        if "deletionTimestamp" in vmi["metadata"]:
            yield "it is still being deleted"
            return
        if is_final(phase_of(vmi)):
            return
        if phase_of(vmi) != "Running":
            yield f"it is {phase_of(vmi) or 'new'}"
        moving = moving_of(vmi)
        if moving.get("migrationUid") and not (moving.get("completed") or moving.get("failed")):
            yield "it is in a migration"
        mine = [
            (node, launcher) for node in self._nodes for launcher in node.launchers.values() if launcher.vmi_uid == uid
        ]
        there = [(node.name, launcher.pod_uid) for node, launcher in mine if launcher.is_running_guest]
        reported = [(node, pod) for pod, node in (status.get("activePods") or {}).items()]
        if there != reported or [status.get("nodeName")] != [node for node, _unused in there]:
            yield f"its guest is in {there}, and its status names {reported}"
        yield from self._stands_still([launcher for _unused, launcher in mine])
        yield from self._lacks_cpus(vmi, [launcher for _unused, launcher in mine if launcher.is_running_guest])
        pods = [(key.name, pod) for key, pod in self._store.list(POD) if controlling_uid(pod) == uid]
        if len(pods) != 1:
            yield f"its Pods are {', '.join(name for name, _unused in pods) or 'none'}"
        for name, pod in pods:
            if pod["spec"].get("readinessGates") and not is_let_serve(pod):
                yield f"Services do not send to {name}"

    def _lacks_cpus(self, vmi: Json, guests: list[Launcher]) -> Iterator[str]:
        """A guest has the virtual CPUs of its spec once its Pod has room for them, and the status says so."""
        wanted = vmi["spec"]["domain"]["cpu"]["sockets"]
        reported = (vmi["status"].get("currentCPUTopology") or {}).get("sockets")
        for guest in guests:
            pod = self._store.find(POD, guest.pod)
            made_for = int(pod["metadata"]["annotations"].get(VCPUS, 0)) if pod is not None else 0
            if made_for >= wanted != guest.vcpus:
                yield f"its guest has {guest.vcpus} virtual CPUs, and is to have {wanted} in a Pod for {made_for}"
            if reported != guest.vcpus:
                yield f"its guest has {guest.vcpus} virtual CPUs, and its status reports {reported}"

    @staticmethod
    def _stands_still(launchers: list[Launcher]) -> Iterator[str]:
        for launcher in launchers:
            if launcher.is_running_guest and not launcher.is_going_on:
                yield f"its guest is {launcher.state}"
