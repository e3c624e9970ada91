# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about a VMI, as a table."""

from __future__ import annotations

import pytest
from kubevirt_api.names import VM_FINALIZER, VMI_FINALIZER

from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.world import ConfirmAbsence, DeletePod, World
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_running_pod, a_vmi, vmi_world

SCHEDULING = {"phase": "Scheduling", "epoch": 1}
GRANTED = {"epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
OTHER_GRANT = {"epoch": 1, "activePods": {"another": "node-1"}, "nodeName": "node-1"}
SENT = {"deletes_sent": frozenset({POD_UID})}
ABSENT = {"is_absence_confirmed": True}
BOUND = a_pod(node="node-1")

TABLE: dict[str, tuple[World, list[str]]] = {
    # to the node
    "fresh: the attempt is recorded first": (vmi_world(a_vmi()), []),
    "without finalizer: that first": (vmi_world(a_vmi(finalizers=())), ["AddFinalizer"]),
    "attempt recorded: create the Pod": (vmi_world(a_vmi(**SCHEDULING)), ["CreatePod"]),
    "spec is wrong: never": (vmi_world(a_vmi("Pending"), problems=("x",)), []),
    "the name is taken: never": (vmi_world(a_vmi(**SCHEDULING), squatter="x"), []),
    "Pod waits for a node: wait": (vmi_world(a_vmi(**SCHEDULING), a_pod()), []),
    "Pod placed: label": (vmi_world(a_vmi(**SCHEDULING), BOUND), ["LabelNode"]),
    "Pod placed, labelled: wait": (vmi_world(a_vmi(node="node-1", **SCHEDULING), BOUND), []),
    "Pod placed, going: wait": (vmi_world(a_vmi(**SCHEDULING), a_pod(node="node-1", deleting=True)), []),
    "Pod placed, failed: wait": (vmi_world(a_vmi(**SCHEDULING), a_pod("Failed", node="node-1")), []),
    # after the hand-over
    "running: nothing": (vmi_world(a_vmi("Running", **GRANTED), a_running_pod()), []),
    "Pod not seen: ask the API server": (vmi_world(a_vmi("Running", **GRANTED)), ["ConfirmAbsence"]),
    "Pod known to be gone: the status says so": (vmi_world(a_vmi("Running", **GRANTED), **ABSENT), []),
    "another Pod has its name: ask": (
        vmi_world(a_vmi("Scheduled", **OTHER_GRANT), a_running_pod()),
        ["ConfirmAbsence"],
    ),
    # final
    "final, Pod over: keep it": (vmi_world(a_vmi("Failed", **GRANTED), a_pod("Failed")), []),
    "final, its Pod ends by itself": (vmi_world(a_vmi("Failed", **GRANTED), a_running_pod()), []),
    "final, an idle Pod: delete": (vmi_world(a_vmi("Failed", **OTHER_GRANT), a_running_pod()), ["DeletePod"]),
    # deletion
    "deleted: delete the Pod": (vmi_world(a_vmi("Running", deleting=True, **GRANTED), a_running_pod()), ["DeletePod"]),
    "deleted, Pod going: wait": (vmi_world(a_vmi("Running", deleting=True), a_running_pod(deleting=True)), []),
    "deleted, Pod's delete sent: wait": (vmi_world(a_vmi("Running", deleting=True), a_running_pod(), **SENT), []),
    "deleted, no Pod seen: ask": (vmi_world(a_vmi("Failed", deleting=True)), ["ConfirmAbsence"]),
    "deleted, no Pod, not final: say how it ended first": (vmi_world(a_vmi("Running", deleting=True), **ABSENT), []),
    "deleted, no Pod, final: let go": (vmi_world(a_vmi("Failed", deleting=True), **ABSENT), ["RemoveFinalizers"]),
    "deleted, upstream's finalizer: let go": (
        vmi_world(a_vmi("Failed", deleting=True, finalizers=(VM_FINALIZER,)), **ABSENT),
        ["RemoveFinalizers"],
    ),
    "deleted, no finalizer of ours: nothing": (
        vmi_world(a_vmi("Running", deleting=True, finalizers=("x",)), a_running_pod()),
        [],
    ),
}


@pytest.mark.parametrize(("world", "actions"), TABLE.values(), ids=TABLE.keys())
def test_the_next_step(world: World, actions: list[str]) -> None:
    plan = decide(world)
    assert [type(one).__name__ for one in plan.steps] == actions
    assert all(one.because for one in plan.steps)


def test_a_squatter_is_looked_at_again() -> None:
    """Pods without our label are not watched."""
    assert decide(vmi_world(a_vmi(**SCHEDULING), squatter="x")).look_again_in


def test_deletes_name_the_very_object() -> None:
    (action,) = decide(vmi_world(a_vmi("Running", deleting=True, **GRANTED), a_running_pod())).steps
    assert isinstance(action, DeletePod)
    assert action.uid == POD_UID


@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
@pytest.mark.parametrize("finalizer", [(VMI_FINALIZER,), (VMI_FINALIZER, VM_FINALIZER)], ids=["ours", "both"])
def test_silence_of_the_cache_is_never_taken_for_death(phase: str, finalizer: tuple[str, ...]) -> None:
    plan = decide(vmi_world(a_vmi(phase, finalizers=finalizer, **GRANTED)))
    assert [type(one) for one in plan.steps] == [ConfirmAbsence]
