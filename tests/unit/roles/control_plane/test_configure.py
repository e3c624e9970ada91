# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long role control_plane tries to apply the configuration, which admission must be up to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
TASKS = yaml.safe_load((ROLE / "tasks/configure.yml").read_text())
APPLY = next(one for one in TASKS if one["name"] == "Apply the configuration")


def environment() -> jinja2.Environment:
    found = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    found.tests["failed"] = lambda result: result.get("failed", False)
    return found


@pytest.mark.parametrize(
    ("result", "is_over"),
    [
        pytest.param({"changed": True}, True, id="applied"),
        pytest.param(
            {
                "failed": True,
                "msg": 'Internal error occurred: failed calling webhook "kubevirts-validator.kubevirt.io"',
            },
            False,
            id="virt-api is not up yet",
        ),
        pytest.param({"failed": True, "msg": "spec.configuration: no such field"}, True, id="refused"),
        pytest.param({"failed": True}, True, id="broken without a word"),
    ],
)
def test_only_what_passes_is_tried_again(result: dict[str, Any], is_over: bool) -> None:
    holds = environment().compile_expression(APPLY["until"], undefined_to_none=False)

    assert holds(**{APPLY["register"]: result}) is is_over


@pytest.mark.parametrize(("seconds", "is_check", "times"), [("300", False, 150), (5, False, 3), (300, True, 0)])
def test_it_is_tried_for_as_long_as_a_step_may_take(seconds: object, is_check: bool, times: int) -> None:
    variables = {"control_plane_wait_timeout": seconds, "__control_plane_found": {"check_mode": is_check}}

    assert int(environment().from_string(APPLY["retries"]).render(variables)) == times
    assert APPLY["delay"] == 2
