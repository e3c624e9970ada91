# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a wait is over."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait.goal import Goal, Verdict, goal_of, judge

READY = [{"type": "Ready", "status": "True"}]


def a_vm(strategy: str = "Always", *, ready: bool = True, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": 2},
        "spec": {"runStrategy": strategy},
        "status": {"desiredGeneration": 2, "conditions": READY if ready else [], **status},
    }


def a_vmi(phase: str = "Running", uid: str = "new", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, **metadata}, "status": {"phase": phase, "conditions": READY}}


def with_condition(obj: dict[str, Any], kind: str, status: str = "True", reason: str = "") -> dict[str, Any]:
    listed = [*obj["status"]["conditions"], {"type": kind, "status": status, "reason": reason}]
    return {**obj, "status": {**obj["status"], "conditions": listed}}


AGENT = Goal("running", condition=("AgentConnected", "True", None))
NO_RESTART = Goal("running", condition=("RestartRequired", "False", None))
PAUSED_VMI = with_condition(a_vmi(), "Paused", reason="PausedByUser")
STALLED_VMI = with_condition(a_vmi(), "Paused", reason="PausedIOError")
FROM_THE_START = {**PAUSED_VMI, "spec": {"startStrategy": "Paused"}}
OVER, LEAVING = a_vmi("Failed"), a_vmi(deletionTimestamp="t")
RUNNING, STOPPED, GONE = Goal("running"), Goal("stopped"), Goal("gone")
CRASHING = a_vm(ready=False, printableStatus="CrashLoopBackOff", startFailure={"consecutiveFailCount": 3})


@pytest.mark.parametrize(
    ("goal", "vm", "vmi", "outcome"),
    [
        pytest.param(RUNNING, a_vm(), a_vmi(), "done", id="runs and is ready"),
        pytest.param(RUNNING, a_vm(desiredGeneration=1), a_vmi(), "waiting", id="ready with the old spec"),
        pytest.param(RUNNING, a_vm(), a_vmi(deletionTimestamp="t"), "waiting", id="instance is leaving"),
        pytest.param(RUNNING, a_vm(ready=False), None, "waiting", id="not there yet"),
        pytest.param(RUNNING, a_vm("Once", ready=False), a_vmi("Succeeded"), "done", id="a job that is done"),
        pytest.param(RUNNING, a_vm("Once", ready=False), a_vmi("Failed"), "hopeless", id="a job that failed"),
        pytest.param(RUNNING, a_vm("Always", ready=False), a_vmi("Succeeded"), "waiting", id="comes again"),
        pytest.param(RUNNING, CRASHING, None, "hopeless", id="crash loop"),
        pytest.param(RUNNING, None, None, "hopeless", id="deleted by somebody"),
        pytest.param(Goal("running", may_come=True), None, None, "waiting", id="may come"),
        pytest.param(Goal("running", "old"), a_vm(), a_vmi(uid="old"), "waiting", id="restart, old one still ready"),
        pytest.param(Goal("running", "old"), a_vm(), a_vmi(uid="new"), "done", id="restart, new one ready"),
        pytest.param(STOPPED, a_vm("Halted"), a_vmi(), "waiting", id="still up"),
        pytest.param(STOPPED, a_vm("Halted"), a_vmi("Succeeded"), "waiting", id="ended, object on its way out"),
        pytest.param(STOPPED, a_vm("Halted"), None, "done", id="stopped"),
        pytest.param(STOPPED, a_vm("Manual"), a_vmi("Succeeded"), "done", id="ended, object kept"),
        pytest.param(GONE, a_vm(), None, "waiting", id="still there"),
        pytest.param(GONE, None, None, "done", id="gone"),
        pytest.param(Goal("gone", uid="old"), a_vmi(), a_vmi(), "done", id="another of the name"),
        pytest.param(Goal("gone", uid="new"), a_vmi(), a_vmi(), "waiting", id="the one that was meant"),
        pytest.param(Goal("instance"), a_vmi(), a_vmi(), "done", id="instance ready"),
        pytest.param(Goal("instance"), OVER, OVER, "hopeless", id="a run that is over"),
        pytest.param(Goal("instance", may_come=True), LEAVING, LEAVING, "done", id="another may come"),
        pytest.param(Goal("instance"), FROM_THE_START, FROM_THE_START, "done", id="was to begin paused"),
        pytest.param(RUNNING, a_vm(ready=False), PAUSED_VMI, "hopeless", id="a user paused it"),
        pytest.param(RUNNING, a_vm(ready=False), STALLED_VMI, "waiting", id="storage paused it"),
        pytest.param(RUNNING, a_vm(ready=False), FROM_THE_START, "done", id="VM that was to begin paused"),
        pytest.param(Goal("paused"), a_vm(), PAUSED_VMI, "done", id="paused"),
        pytest.param(Goal("paused"), a_vm(), a_vmi(), "waiting", id="not paused yet"),
        pytest.param(Goal("paused"), a_vm(), None, "hopeless", id="nothing to pause any more"),
        pytest.param(Goal("paused"), a_vm(), LEAVING, "hopeless", id="being stopped"),
        pytest.param(Goal("unpaused"), a_vm(), PAUSED_VMI, "waiting", id="still paused"),
        pytest.param(Goal("reset"), a_vm(), PAUSED_VMI, "done", id="reset while paused"),
        pytest.param(Goal("softrebooted"), a_vm(), a_vmi(), "done", id="rebooted"),
        pytest.param(AGENT, with_condition(a_vm(), "AgentConnected"), a_vmi(), "waiting", id="its last one's agent"),
        pytest.param(AGENT, a_vm(), with_condition(a_vmi(), "AgentConnected"), "done", id="its own agent"),
        pytest.param(NO_RESTART, a_vm(), a_vmi(), "done", id="False and not there are the same"),
        pytest.param(NO_RESTART, with_condition(a_vm(), "RestartRequired"), a_vmi(), "waiting", id="a VM's condition"),
        pytest.param(
            Goal("exists", condition=("RestartRequired", "False", None)),
            a_vm(created=True, desiredGeneration=1),
            a_vmi(),
            "waiting",
            id="a condition of the spec before",
        ),
    ],
)
def test_verdict(goal: Goal, vm: dict[str, Any] | None, vmi: dict[str, Any] | None, outcome: str) -> None:
    verdict: Verdict = judge(goal, vm, vmi)
    assert ("done" if verdict.done else "hopeless" if verdict.hopeless else "waiting") == outcome


@pytest.mark.parametrize(
    ("state", "strategy", "kind"),
    [
        ("present", "Always", "running"), ("present", "Halted", "stopped"), ("present", "Manual", None),
        ("absent", "Always", "gone"), ("stopped", "Manual", "stopped"), ("restarted", "Manual", "running"),
    ],
)  # fmt: skip
def test_goal_follows_from_state_and_strategy(state: str, strategy: str, kind: str | None) -> None:
    goal = goal_of(state, a_vm(strategy))
    assert (goal.kind if goal else None) == kind


NO_DISK = {"type": "DataVolumesReady", "status": "False", "reason": "NotBound"}


@pytest.mark.parametrize(
    ("wanted", "conditions", "words"),
    [
        (("DataVolumesReady", "True", None), [NO_DISK], "DataVolumesReady is not True: it is False (NotBound)"),
        (("Synced", "False", "Late"), [], "Synced is not False (Late): it is missing"),
        (("AgentConnected", "True", None), [], "AgentConnected is not True: it is missing; install and start qemu-"),
        (("AgentConnected", "False", "Old"), [], "AgentConnected is not False (Old): it is missing"),
    ],
)
def test_a_condition_is_reported_with_wanted_and_actual_status(wanted: Any, conditions: Any, words: str) -> None:
    vm = {"metadata": {}, "status": {"conditions": conditions}}
    verdict = judge(Goal("exists", condition=wanted), vm, None)

    assert f"{verdict.wanted}: {verdict.missing}".startswith(f"its condition {words}")
