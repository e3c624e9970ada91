# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long role control_plane retries to apply the configuration: admission must be up to accept it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, load, role_variables

ROLE = ROLES / "control_plane"
VARIABLES = role_variables("control_plane")
TASKS = {task["name"]: task for task in load(ROLE / "tasks/configure.yml")}
DEADLINE = TASKS["Set the deadline for the configuration"]["ansible.builtin.set_fact"]
APPLY = TASKS["Apply the configuration"]
UNAVAILABLE = {
    "failed": True,
    "msg": 'Internal error occurred: failed calling webhook "kubevirts-validator.kubevirt.io"',
}
DENIED = {
    "failed": True,
    "msg": 'admission webhook "kubevirts-validator.kubevirt.io" denied the request: spec.new: not built in it',
}


def holds(key: str, result: dict[str, Any], *, is_changed: bool = True, **variables: Any) -> bool:
    """Return whether a condition of the task holds after a try with this result."""
    found = {"owner": "ours", "check_mode": False, "namespace_owner": "ours", **variables.pop("found", {})}
    known = {
        "__control_plane_found": found,
        "__control_plane_installed": {"changed": is_changed},
        "__control_plane_configured": {"changed": False, **result},
        "__control_plane_tried_until": time.time() + 300,
    }
    return Host(ROLE, VARIABLES | known | variables).holds(APPLY[key])


@pytest.mark.parametrize(
    ("result", "variables", "is_over"),
    [
        pytest.param({"changed": True}, {}, True, id="applied"),
        pytest.param({"failed": True, "msg": "spec.configuration: no such field"}, {}, True, id="refused"),
        pytest.param({"failed": True}, {}, True, id="failed without a message"),
        pytest.param(UNAVAILABLE, {}, False, id="virt-api is not up yet"),
        pytest.param(UNAVAILABLE, {"__control_plane_tried_until": 0}, True, id="virt-api did not come in time"),
        pytest.param(DENIED, {"control_plane_wait": False}, False, id="by the virt-api that an upgrade replaces"),
        pytest.param(DENIED, {"control_plane_wait": True}, True, id="the new virt-api was waited for"),
        pytest.param(DENIED, {"control_plane_wait": False, "is_changed": False}, True, id="nothing was upgraded"),
        pytest.param(DENIED, {"control_plane_wait": False, "found": {"owner": "none"}}, True, id="none before"),
        pytest.param(
            DENIED, {"control_plane_wait": False, "__control_plane_tried_until": 0}, True, id="denied, and time is up"
        ),
    ],
)
def test_only_transient_errors_are_retried_until_the_deadline(
    result: dict[str, Any], variables: dict[str, Any], is_over: bool
) -> None:
    assert holds("until", result, **variables) is is_over


@pytest.mark.parametrize(
    ("is_check", "is_changed", "result", "is_failure"),
    [
        pytest.param(True, True, DENIED, False, id="by a virt-api that would be replaced"),
        pytest.param(False, True, DENIED, True, id="no check mode"),
        pytest.param(True, False, DENIED, True, id="by a virt-api that stays"),
        pytest.param(True, True, {"failed": True, "msg": "no such host"}, True, id="another failure"),
        pytest.param(True, True, {"changed": True}, False, id="accepted"),
    ],
)
def test_in_check_mode_a_refusal_of_the_old_virt_api_is_no_failure(
    is_check: bool, is_changed: bool, result: dict[str, Any], is_failure: bool
) -> None:
    assert holds("failed_when", result, is_changed=is_changed, found={"check_mode": is_check}) is is_failure


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        pytest.param({}, 300, id="the timeout of a step"),
        pytest.param({"control_plane_wait_timeout": "5"}, 5, id="given as a text"),
        pytest.param({"control_plane_wait": False}, 300, id="virt-api may come"),
        pytest.param({"control_plane_wait": "false", "nodes": []}, 10, id="without a node it cannot come"),
        pytest.param({"control_plane_wait": False, "nodes": [], "control_plane_wait_timeout": 3}, 3, id="nor longer"),
        pytest.param({"nodes": []}, 300, id="nodes are waited for"),
    ],
)
def test_the_deadline_of_the_retries(variables: dict[str, Any], seconds: int) -> None:
    found = {"nodes": variables.get("nodes", ["worker-1"])}
    defaults = {"control_plane_wait": True, "control_plane_wait_timeout": 300, "__control_plane_found": found}
    (template,) = DEADLINE.values()
    before = time.time()

    deadline = float(Host(ROLE, VARIABLES | defaults | variables).value(template))

    assert before - 0.001 <= deadline - seconds <= time.time()


@pytest.mark.parametrize(("seconds", "is_check", "times"), [("300", False, 150), (5, False, 3), (300, True, 0)])
def test_attempts_are_limited_and_check_mode_has_one(seconds: object, is_check: bool, times: int) -> None:
    """A clock set back does not extend the wait."""
    variables = {"control_plane_wait_timeout": seconds, "__control_plane_found": {"check_mode": is_check}}

    assert int(Host(ROLE, VARIABLES | variables).value(APPLY["retries"])) == times
    assert APPLY["delay"] == 2


@pytest.mark.parametrize(
    ("found", "is_applied"),
    [
        pytest.param({"check_mode": False, "owner": "none", "namespace_owner": "none"}, True, id="no check mode"),
        pytest.param({"check_mode": True, "owner": "ours", "namespace_owner": "ours"}, True, id="installed"),
        pytest.param({"check_mode": True, "owner": "none", "namespace_owner": "ours"}, False, id="no definition yet"),
        pytest.param({"check_mode": True, "owner": "ours", "namespace_owner": "none"}, False, id="no namespace yet"),
    ],
)
def test_a_dry_run_that_the_server_cannot_validate_yet_is_skipped(found: dict[str, Any], is_applied: bool) -> None:
    assert holds("when", {}, found=found) is is_applied
