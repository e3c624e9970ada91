# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power requests for every run strategy and instance."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import power
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write.power import Impossible, Operation

PATCH_ALWAYS = Operation(None, {"spec": {"runStrategy": "Always", "running": None}})
PATCH_HALTED = Operation(None, {"spec": {"runStrategy": "Halted", "running": None}})


def a_vm(strategy: str, *actions: str) -> dict[str, Any]:
    return {
        "spec": {"runStrategy": strategy},
        "status": {"stateChangeRequests": [{"action": item} for item in actions]},
    }


def a_vmi(phase: str, *, deleting: bool = False) -> dict[str, Any]:
    return {"metadata": {"uid": "u", **({"deletionTimestamp": "t"} if deleting else {})}, "status": {"phase": phase}}


RUNS, DONE, FAILED, LEAVING = a_vmi("Running"), a_vmi("Succeeded"), a_vmi("Failed"), a_vmi("Running", deleting=True)


@pytest.mark.parametrize(
    ("state", "vm", "vmi", "ask"),
    [
        pytest.param("started", a_vm("Halted"), None, Operation("start"), id="start halted"),
        pytest.param("started", a_vm("Halted"), LEAVING, PATCH_ALWAYS, id="start while it goes down"),
        pytest.param("started", a_vm("Halted", "Start"), None, None, id="a paused start is on its way"),
        pytest.param("started", a_vm("Always"), None, None, id="always starts by itself"),
        pytest.param("started", a_vm("Always"), RUNS, None, id="already started"),
        pytest.param("started", a_vm("Manual"), None, Operation("start"), id="start manual"),
        pytest.param("started", a_vm("Manual"), DONE, Operation("start"), id="start manual again"),
        pytest.param("started", a_vm("Manual", "Start"), None, None, id="asked already"),
        pytest.param("started", a_vm("RerunOnFailure"), FAILED, None, id="will be run again"),
        pytest.param("started", a_vm("RerunOnFailure"), DONE, Operation("start"), id="start what ended well"),
        pytest.param("stopped", a_vm("Halted"), LEAVING, None, id="on the way down"),
        pytest.param("stopped", a_vm("Always"), None, Operation("stop"), id="stop always even without instance"),
        pytest.param("stopped", a_vm("Always"), RUNS, Operation("stop"), id="stop always"),
        pytest.param("stopped", a_vm("Manual"), RUNS, Operation("stop"), id="stop manual"),
        pytest.param("stopped", a_vm("Manual", "Stop"), RUNS, None, id="stop asked already"),
        pytest.param("stopped", a_vm("Manual"), DONE, None, id="has ended by itself"),
        pytest.param("stopped", a_vm("RerunOnFailure"), FAILED, PATCH_HALTED, id="would be run again"),
        pytest.param("restarted", a_vm("Always"), RUNS, Operation("restart"), id="restart"),
        pytest.param("restarted", a_vm("Halted"), None, Operation("start"), id="restart of a halted one starts it"),
        pytest.param("restarted", a_vm("Always"), LEAVING, None, id="is being replaced already"),
    ],
)
def test_only_necessary_requests_are_sent(
    state: str, vm: dict[str, Any], vmi: dict[str, Any] | None, ask: Operation | None
) -> None:
    assert power.decide(state, vm, vmi) == ask


@pytest.mark.parametrize(
    ("vm", "vmi", "ask"),
    [
        pytest.param(a_vm("Halted"), None, Operation("start", {"paused": True}), id="start halted"),
        pytest.param(a_vm("Manual"), DONE, Operation("start", {"paused": True}), id="start manual again"),
        pytest.param(a_vm("Always"), RUNS, None, id="runs already"),
    ],
)
def test_a_start_leaves_the_guest_paused(vm: dict[str, Any], vmi: dict[str, Any] | None, ask: Operation | None) -> None:
    assert power.decide("started", vm, vmi, paused=True) == ask


def test_only_a_start_leaves_the_guest_paused() -> None:
    with pytest.raises(Impossible, match="still stopping"):
        power.decide("started", a_vm("Halted"), LEAVING, paused=True)


@pytest.mark.parametrize(
    ("state", "vmi"), [pytest.param("started", DONE, id="start"), pytest.param("restarted", RUNS, id="restart")]
)
def test_a_request_that_once_refuses_names_the_remedy(state: str, vmi: dict[str, Any]) -> None:
    with pytest.raises(Impossible, match="set run_strategy to"):
        power.decide(state, a_vm("Once"), vmi)


def test_the_grace_period_has_the_name_of_each_subresource() -> None:
    assert power.decide("stopped", a_vm("Always"), RUNS, 5) == Operation("stop", {"gracePeriod": 5})
    assert power.decide("restarted", a_vm("Always"), RUNS, 0) == Operation("restart", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("spec", "ask", "after"),
    [
        pytest.param({"runStrategy": "Halted"}, Operation("start"), {"runStrategy": "Always"}, id="start halted"),
        pytest.param({"runStrategy": "Manual"}, Operation("start"), {"runStrategy": "Manual"}, id="start manual"),
        pytest.param({"running": False}, Operation("start"), {"running": True}, id="start, spelt as before"),
        pytest.param({}, Operation("start"), {"runStrategy": "Always"}, id="start what says nothing"),
        pytest.param({"runStrategy": "Always"}, Operation("stop"), {"runStrategy": "Halted"}, id="stop always"),
        pytest.param({"runStrategy": "Once"}, Operation("stop"), {"runStrategy": "Halted"}, id="stop once"),
        pytest.param({"running": True}, Operation("stop"), {"running": False}, id="stop, spelt as before"),
        pytest.param(
            {"runStrategy": "RerunOnFailure"}, Operation("stop"), {"runStrategy": "RerunOnFailure"}, id="rerun"
        ),
        pytest.param({"running": True}, PATCH_HALTED, {"runStrategy": "Halted"}, id="another strategy"),
        pytest.param({"runStrategy": "Always"}, Operation("restart"), {"runStrategy": "Always"}, id="restart"),
        pytest.param(
            {"runStrategy": "Always"}, Operation("pause", of_instance=True), {"runStrategy": "Always"}, id="pause"
        ),
    ],
)
def test_the_run_strategy_after_a_request_is_predicted(
    spec: dict[str, Any], ask: Operation, after: dict[str, Any]
) -> None:
    vm = {"spec": {**spec, "template": {}}, "status": {}}

    assert power.predicted(vm, ask) == {"spec": {**after, "template": {}}, "status": {}}
    assert vm["spec"] == {**spec, "template": {}}
