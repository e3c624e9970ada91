# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long role control_plane retries to apply the configuration: admission must be up to accept it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible.plugins.filter.core import to_datetime

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
TASKS = yaml.safe_load((ROLE / "tasks/configure.yml").read_text())
APPLY = next(task for task in TASKS if task["name"] == "Apply the configuration")


DEADLINE = next(task for task in TASKS if "ansible.builtin.set_fact" in task)["ansible.builtin.set_fact"]
UNAVAILABLE = {
    "failed": True,
    "msg": 'Internal error occurred: failed calling webhook "kubevirts-validator.kubevirt.io"',
}
DENIED = {
    "failed": True,
    "msg": 'admission webhook "kubevirts-validator.kubevirt.io" denied the request: spec.new: not built in it',
}
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def environment(now: datetime = NOW) -> jinja2.Environment:
    found = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    found.tests["failed"] = lambda result: result.get("failed", False)
    found.filters.update(to_datetime=to_datetime, bool=lambda value: str(value).lower() == "true")
    found.globals["now"] = lambda utc: now.replace(tzinfo=None)
    return found


def deadline(**variables: object) -> float:
    """Return the deadline of the retries, in seconds from their start."""
    (written,) = DEADLINE.values()
    others = {"control_plane_wait": True, "control_plane_wait_timeout": 300, "nodes": ["worker-1"]} | variables
    text = environment().from_string(written).render(others, __control_plane_found={"nodes": others["nodes"]})
    return float(text) - NOW.timestamp()


def is_denied_by_older(result: dict[str, Any], *, owner: str, is_changed: bool) -> bool:
    """Return whether the virt-api that refused may be the one about to be replaced."""
    written = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__control_plane_is_denied_by_older"]
    found = environment()
    found.tests["changed"] = lambda item: item["changed"]
    variables = {"__control_plane_found": {"owner": owner}, "__control_plane_installed": {"changed": is_changed}}
    return bool(found.compile_expression(written.strip("{} \n"))(**variables, **{APPLY["register"]: result}))


def is_over(
    result: dict[str, Any], *, seconds: int = 0, waits: bool = True, owner: str = "ours", is_changed: bool = True
) -> bool:
    """Return whether no retry follows so many seconds after the start, of 300."""
    (name,) = DEADLINE
    variables: dict[str, Any] = {APPLY["register"]: result, name: NOW.timestamp() + 300, "control_plane_wait": waits}
    by_older = is_denied_by_older(result, owner=owner, is_changed=is_changed)
    variables["__control_plane_is_denied_by_older"] = by_older
    later = environment(NOW + timedelta(seconds=seconds))
    return bool(later.compile_expression(APPLY["until"], undefined_to_none=False)(**variables))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param({"changed": True}, True, id="applied"),
        pytest.param(UNAVAILABLE, False, id="virt-api is not up yet"),
        pytest.param({"failed": True, "msg": "spec.configuration: no such field"}, True, id="refused"),
        pytest.param({"failed": True}, True, id="broken without a word"),
    ],
)
def test_only_transient_errors_are_retried(result: dict[str, Any], expected: bool) -> None:
    assert is_over(result) is expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param({"waits": False}, False, id="by the virt-api that an upgrade replaces"),
        pytest.param({"waits": True}, True, id="that one is gone, it was waited for"),
        pytest.param({"waits": False, "is_changed": False}, True, id="nothing was upgraded"),
        pytest.param({"waits": False, "owner": "none"}, True, id="there was none before"),
        pytest.param({"waits": False, "seconds": 300}, True, id="time is up"),
    ],
)
def test_a_refusal_of_an_older_virt_api_is_retried(case: dict[str, Any], expected: bool) -> None:
    assert is_over(DENIED, **case) is expected


@pytest.mark.parametrize(
    ("is_check", "owner", "is_changed", "result", "expected"),
    [
        pytest.param(True, "ours", True, DENIED, False, id="by what would be replaced"),
        pytest.param(False, "ours", True, DENIED, True, id="for good"),
        pytest.param(True, "ours", False, DENIED, True, id="by what stays"),
        pytest.param(True, "ours", True, {"failed": True, "msg": "no such host"}, True, id="another failure"),
        pytest.param(True, "ours", True, {"changed": True}, False, id="it is taken"),
    ],
)
def test_in_check_mode_a_refusal_of_the_old_virt_api_is_no_failure(
    is_check: bool, owner: str, is_changed: bool, result: dict[str, Any], expected: bool
) -> None:
    variables: dict[str, Any] = {"__control_plane_found": {"check_mode": is_check}, APPLY["register"]: result}
    by_older = is_denied_by_older(result, owner=owner, is_changed=is_changed)
    variables["__control_plane_is_denied_by_older"] = by_older
    fails = environment().compile_expression(APPLY["failed_when"], undefined_to_none=False)

    assert bool(fails(**variables)) is expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, False), (299, False), (300, True), (700, True)])
def test_the_deadline_is_independent_of_the_length_of_an_attempt(seconds: int, expected: bool) -> None:
    assert is_over(UNAVAILABLE, seconds=seconds) is expected


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        pytest.param({}, 300, id="as long as a step may take"),
        pytest.param({"control_plane_wait_timeout": "5"}, 5, id="given as a text"),
        pytest.param({"control_plane_wait": False}, 300, id="not waited for, and it may come"),
        pytest.param({"control_plane_wait": "false", "nodes": []}, 10, id="without a node it cannot come"),
        pytest.param({"control_plane_wait": False, "nodes": [], "control_plane_wait_timeout": 3}, 3, id="nor longer"),
        pytest.param({"nodes": []}, 300, id="who waits waits for nodes"),
    ],
)
def test_the_length_of_the_retries(variables: dict[str, Any], seconds: int) -> None:
    assert deadline(**variables) == seconds


# A clock set back does not extend the wait: the number of attempts is limited too.
@pytest.mark.parametrize(("seconds", "is_check", "times"), [("300", False, 150), (5, False, 3), (300, True, 0)])
def test_attempts_are_limited_and_check_mode_has_one(seconds: object, is_check: bool, times: int) -> None:
    variables = {"control_plane_wait_timeout": seconds, "__control_plane_found": {"check_mode": is_check}}

    assert int(environment().from_string(APPLY["retries"]).render(variables)) == times
    assert APPLY["delay"] == 2


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param({"check_mode": False, "owner": "none", "namespace_owner": "none"}, True, id="installed"),
        pytest.param({"check_mode": True, "owner": "ours", "namespace_owner": "ours"}, True, id="checked"),
        pytest.param({"check_mode": True, "owner": "none", "namespace_owner": "ours"}, False, id="its kind is to come"),
        pytest.param(
            {"check_mode": True, "owner": "ours", "namespace_owner": "none"}, False, id="its namespace is to come"
        ),
    ],
)
def test_a_dry_run_that_the_server_cannot_judge_yet_is_skipped(found: dict[str, Any], expected: bool) -> None:
    written = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__control_plane_is_namespace_to_come"]
    variables = {"__control_plane_found": found}
    is_to_come = environment().compile_expression(written.strip("{} "))(**variables)
    holds = environment().compile_expression(APPLY["when"], undefined_to_none=False)

    assert holds(**variables, __control_plane_is_namespace_to_come=is_to_come) is expected
