# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a wait is over."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.goal import Goal, Verdict, goal_of, judge

READY = [{"type": "Ready", "status": "True"}]


def a_vm(strategy: str = "Always", *, ready: bool = True, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": 2},
        "spec": {"runStrategy": strategy},
        "status": {"desiredGeneration": 2, "conditions": READY if ready else [], **status},
    }


def a_vmi(phase: str = "Running", uid: str = "new", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, **metadata}, "status": {"phase": phase, "conditions": READY}}


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
        pytest.param(Goal("instance"), a_vmi(), None, "done", id="instance ready"),
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
