# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks before any request, and the defaults of list entries."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.batch import requests_from
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.kinds import REPLICA_SET, VM, VMI, Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.vm_request import terms_from

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


GRACE = {"grace_period_seconds": 0}
DELETE = {"delete_options": {"propagationPolicy": "Orphan", "preconditions": None}}


@pytest.mark.parametrize("state", ["present", "started", "absent", "paused", "reset"])
def test_a_grace_period_without_a_shutdown_is_refused(state: str) -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from({**NAMED, **GRACE, "state": state})
    assert f"grace_period_seconds says how long a guest may take to shut down; with state={state} it has no effect" in (
        caught.value.message
    )
    assert "state=stopped or state=restarted" in caught.value.message
    assert "leave it out" in caught.value.message


@pytest.mark.parametrize("state", ["present", "started", "stopped", "restarted", "unpaused"])
@pytest.mark.parametrize("kind", [VM, VMI, REPLICA_SET])
def test_delete_options_without_a_deletion_are_refused(kind: Kind, state: str) -> None:
    words = f"delete_options says how to delete; with state={state} it has no effect: set state=absent, or leave it out"
    with pytest.raises(BadArgument, match=words):
        requests_from({**NAMED, **DELETE, "state": state, "force": True}, kind)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({**GRACE, "state": "stopped"}, id="stopped"),
        pytest.param({**GRACE, "state": "restarted"}, id="restarted"),
        pytest.param({**DELETE, "state": "absent"}, id="absent"),
        pytest.param({"delete_options": {"propagationPolicy": None, "preconditions": None}}, id="none of them is said"),
        pytest.param({"state": "absent", "memory": "1Gi", "run_strategy": "Always", "force": True}, id="what it was"),
    ],
)
def test_options_of_a_shutdown_or_deletion_are_accepted_with_one(params: dict[str, Any]) -> None:
    """So are options of the machine with state=absent: plays often keep them and only switch the state."""
    assert requests_from({**NAMED, **params})


def test_machines_may_share_options_that_only_some_use() -> None:
    mixed = [{"name": "a"}, {"name": "b", "state": "absent"}, {"name": "c", "state": "stopped"}]
    assert len(requests_from({"namespace": "default", **GRACE, **DELETE, "vms": mixed})) == 3
    assert requests_from({"namespace": "default", **GRACE, **DELETE, "vms": []}) == []
    with pytest.raises(BadArgument, match="with state=present, state=started it has no effect"):
        requests_from({"namespace": "default", **DELETE, "vms": [{"name": "b", "state": "started"}, {"name": "a"}]})


@pytest.mark.parametrize(
    ("params", "option"),
    [
        ({"image": ""}, "image"),
        ({"memory": ""}, "memory"),
        ({"cpu": {"model": ""}}, "cpu.model"),
        ({"cloud_init": {"user_data": "x", "user_data_secret": ""}}, "cloud_init.user_data_secret"),
        ({"cloud_init": {"user_data": "x", "network_data_secret": ""}}, "cloud_init.network_data_secret"),
    ],
)
def test_an_empty_text_is_refused(params: dict[str, Any], option: str) -> None:
    """A user who names an image in an empty variable does not want a machine without a disk."""
    with pytest.raises(BadArgument, match=rf"vms\[0\]: {option} is empty; .*default\(omit, true\)"):
        requests_from({"vms": [{**NAMED, **params}]})


def test_all_problems_of_a_list_are_reported_at_once() -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from({"namespace": "default", "vms": [{"name": "A"}, {"name": "b"}, {"name": "c_"}]})
    assert "vms[0]: name 'A'" in caught.value.message
    assert "vms[2]: name 'c_'" in caught.value.message


def test_an_entry_inherits_the_options_of_the_task() -> None:
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
    assert first.declaration.obj["spec"]["runStrategy"] == "Manual"
    assert first.declaration.obj["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "1Gi"}
    assert (second.state, second.declaration.obj["spec"]["runStrategy"]) == ("started", "Always")
    assert second.declaration.obj["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"}
    assert third.namespace == "other"


@pytest.mark.parametrize("option", ["wait_timeout", "wait_sleep"])
def test_times_must_be_positive(option: str) -> None:
    with pytest.raises(BadArgument, match="must be positive"):
        terms_from({option: 0}, check_mode=False, diff=False)


def test_an_unusable_value_is_named_with_object_field_and_remedy() -> None:
    with pytest.raises(BadArgument) as caught:
        requests_from({**NAMED, "definition": {"spec": {"template": {"spec": {"domain": None}}}}})
    assert caught.value.message == (
        "VirtualMachine default/web: definition: spec.template.spec.domain is empty; write its fields below it, or"
        " leave domain out"
    )
