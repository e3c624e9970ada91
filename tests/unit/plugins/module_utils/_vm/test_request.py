# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is checked before anything is sent, and how entries of a list are filled up."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import requests_from, terms_from

NAMED = {"name": "web", "namespace": "default"}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        pytest.param({"name": "../pods/x", "namespace": "default"}, "is not a DNS subdomain", id="name is a path"),
        pytest.param({"name": "w", "namespace": "d?fieldManager=x"}, "is not a DNS label", id="namespace has a query"),
        pytest.param({"name": "w"}, "namespace is missing", id="no namespace"),
        pytest.param({"namespace": "d"}, "name is missing", id="no name"),
        pytest.param(
            {**NAMED, "state": "restarted", "grace_period_seconds": 30}, "immediate (0)", id="graceful restart"
        ),
        pytest.param({**NAMED, "grace_period_seconds": -1}, "must not be negative", id="negative grace"),
        pytest.param(
            {"generate_name": "w-", "namespace": "d", "state": "absent"}, "cannot be absent", id="absent without name"
        ),
        pytest.param({"vms": [NAMED, NAMED]}, "default/web is listed twice", id="twice"),
    ],
)
def test_bad_requests_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from(params)
    assert words in caught.value.message


def test_all_problems_of_a_list_are_reported_at_once() -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from({"namespace": "default", "vms": [{"name": "A"}, {"name": "b"}, {"name": "c_"}]})
    assert "vms[0]: name 'A'" in caught.value.message
    assert "vms[2]: name 'c_'" in caught.value.message


def test_the_task_stands_in_for_what_an_entry_leaves_out() -> None:
    params = {
        "namespace": "default",
        "memory": "1Gi",
        "run_strategy": "Manual",
        "state": "present",
        "vms": [
            {"name": "a"},
            {"name": "b", "memory": "2Gi", "running": True, "state": "started"},
            {"definition": {"metadata": {"name": "c", "namespace": "other"}}},
        ],
    }
    first, second, third = requests_from(params)
    assert first.declared.vm["spec"]["runStrategy"] == "Manual"
    assert first.declared.vm["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "1Gi"}
    assert (second.state, second.declared.vm["spec"]["runStrategy"]) == ("started", "Always")
    assert second.declared.vm["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"}
    assert third.namespace == "other"


@pytest.mark.parametrize("option", ["wait_timeout", "wait_sleep"])
def test_times_must_be_positive(option: str) -> None:
    with pytest.raises(BadArgument, match="must be positive"):
        terms_from({option: 0}, check_mode=False, diff=False)


def test_what_cannot_be_used_is_named_with_its_object_field_and_remedy() -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from({**NAMED, "definition": {"spec": {"template": {"spec": {"domain": None}}}}})
    assert caught.value.message == (
        "VirtualMachine default/web: definition: spec.template.spec.domain is empty; write its fields below it, or"
        " leave domain out"
    )
