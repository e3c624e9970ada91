# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which write makes a VM match its declaration."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.batch import requests_from
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.vm_request import VmRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import ensure_state, replace
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write.update import Write

NAMED = {"name": "web", "namespace": "default"}
MACHINE = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}


def a_request(state: str = "present", **params: Any) -> VmRequest:
    return requests_from({**NAMED, "state": state, **params})[0]


def a_vm(*, applied: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a stored VM; applied: the field set of an earlier apply of this module."""
    fields = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": applied}] if applied else []
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {**NAMED, "uid": "u", "resourceVersion": "7", "managedFields": fields},
        "spec": {"template": {"spec": copy.deepcopy(MACHINE)}, **(spec or {"runStrategy": "Always"})},
    }


def test_a_new_vm_runs_by_default() -> None:
    write = replace.for_creation(a_request(memory="1Gi"))
    assert (write.method, write.body["spec"]["runStrategy"]) == ("apply", "Always")
    assert replace.for_creation(a_request("stopped", memory="1Gi")).body["spec"]["runStrategy"] == "Halted"


@pytest.mark.parametrize(
    ("state", "given", "created"),
    [
        pytest.param("stopped", {"run_strategy": "Always"}, {"runStrategy": "Halted"}, id="it would run"),
        pytest.param("stopped", {"run_strategy": "RerunOnFailure"}, {"runStrategy": "Halted"}, id="it would run once"),
        pytest.param("stopped", {"running": True}, {"runStrategy": "Halted"}, id="the old spelling"),
        pytest.param("stopped", {"run_strategy": "Manual"}, {"runStrategy": "Manual"}, id="it does not run by itself"),
        pytest.param("started", {"running": False}, {"runStrategy": "Always"}, id="it would not run"),
        pytest.param("present", {"run_strategy": "Halted"}, {"runStrategy": "Halted"}, id="as declared"),
    ],
)
def test_a_new_vm_gets_no_strategy_that_contradicts_its_state(
    state: str, given: dict[str, Any], created: dict[str, Any]
) -> None:
    spec = replace.for_creation(a_request(state, memory="1Gi", **given)).body["spec"]
    assert {key: spec[key] for key in ("running", "runStrategy") if key in spec} == created


def test_a_generated_name_is_created_by_post() -> None:
    request = requests_from({"generate_name": "web-", "namespace": "default", "memory": "1Gi"})[0]
    assert replace.for_creation(request).method == "create"


def test_a_halted_vm_stays_halted_without_a_declared_strategy() -> None:
    assert ensure_state.decide(a_request(memory="1Gi"), a_vm(runStrategy="Halted")) is None


def test_options_send_only_differences() -> None:
    write = ensure_state.decide(a_request(memory="2Gi"), a_vm())
    assert write == Write("patch", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "2Gi"}}}}}})


def test_running_and_run_strategy_are_compared() -> None:
    assert ensure_state.decide(a_request(run_strategy="Always"), a_vm(running=True)) is None
    assert ensure_state.decide(a_request(running=True), a_vm(runStrategy="Always")) is None
    write = ensure_state.decide(a_request(running=False), a_vm(running=True))
    assert write == Write("patch", {"spec": {"runStrategy": "Halted", "running": None}})


def test_a_power_state_overrides_a_contradicting_strategy() -> None:
    for strategy in ("Always", "RerunOnFailure", "Once"):
        assert ensure_state.decide(a_request("stopped", run_strategy=strategy), a_vm(runStrategy="Halted")) is None
    assert ensure_state.decide(a_request("started", running=False), a_vm(runStrategy="Always")) is None


DEFINITION = {"metadata": {"labels": {"a": "1"}}, "spec": {"template": {"spec": MACHINE}}}


def test_a_definition_removes_fields_that_it_no_longer_declares() -> None:
    live = a_vm(applied={"f:metadata": {"f:labels": {"f:a": {}, "f:old": {}}}, "f:spec": {"f:runStrategy": {}}})
    live["metadata"]["labels"] = {"a": "1", "old": "2", "foreign": "3"}
    write = ensure_state.decide(a_request(definition=DEFINITION), live)
    assert write is not None
    assert write.method == "apply"
    assert write.body["metadata"]["labels"] == {"a": "1"}
    assert write.body["spec"]["runStrategy"] == "Always", "left out, an apply would take it away"
    assert write.body["metadata"]["resourceVersion"] == "7", "and nobody may have stopped it meanwhile"


def test_options_remove_nothing() -> None:
    live = a_vm(applied={"f:metadata": {"f:labels": {"f:old": {}}}})
    live["metadata"]["labels"] = {"old": "2"}
    assert ensure_state.decide(a_request(memory="1Gi"), live) is None


def test_a_definition_with_nulls_is_a_patch_that_removes_fields() -> None:
    live = a_vm(applied={"f:metadata": {"f:labels": {"f:old": {}}}})
    live["metadata"]["labels"] = {"a": "1", "old": "2"}
    live["spec"]["template"]["spec"]["nodeSelector"] = {"x": "y"}
    definition = copy.deepcopy(DEFINITION)
    definition["spec"]["template"]["spec"]["nodeSelector"] = None
    write = ensure_state.decide(a_request(definition=definition), live)
    assert write == Write(
        "patch",
        {
            "spec": {"template": {"spec": {"nodeSelector": None}}},
            "metadata": {"labels": {"old": None}, "resourceVersion": "7"},
        },
    )


def test_force_replaces_and_keeps_identity_and_strategy() -> None:
    write = ensure_state.decide(a_request(memory="2Gi", force=True), a_vm(runStrategy="Manual"))
    assert write is not None
    assert write.method == "replace"
    assert write.body["metadata"]["resourceVersion"] == "7"
    assert write.body["spec"]["runStrategy"] == "Manual"


def test_a_change_of_a_list_has_the_read_version_as_precondition() -> None:
    live = a_vm()
    live["spec"]["template"]["spec"]["volumes"] = [{"name": "hot", "emptyDisk": {}}]
    added = ensure_state.decide(a_request(volumes=[{"name": "a", "emptyDisk": {}}]), live)
    assert added is not None
    assert added.body["metadata"] == {"resourceVersion": "7"}
    assert added.body["spec"]["template"]["spec"]["volumes"][0]["name"] == "hot"
    other = ensure_state.decide(a_request(memory="2Gi"), live)
    assert other is not None
    assert "metadata" not in other.body


def with_disk(live: dict[str, Any]) -> dict[str, Any]:
    live["spec"]["template"]["spec"]["domain"]["devices"] = {"disks": [{"name": "data", "disk": {}}]}
    return live


@pytest.mark.parametrize("options", [{}, {"definition": DEFINITION}], ids=["options", "definition"])
def test_an_image_that_an_existing_machine_gets_is_its_first_disk(options: dict[str, Any]) -> None:
    live = with_disk(a_vm())
    write = ensure_state.decide(a_request(image="x", disks=[{"name": "data"}], **options), live)
    assert write is not None
    disks = write.body["spec"]["template"]["spec"]["domain"]["devices"]["disks"]
    assert [disk["name"] for disk in disks] == ["containerdisk", "data"]


def test_a_machine_with_the_disk_of_the_image_keeps_its_order() -> None:
    live = with_disk(a_vm())
    live["spec"]["template"]["spec"]["volumes"] = [{"name": "containerdisk", "containerDisk": {"image": "x"}}]
    live["spec"]["template"]["spec"]["domain"]["devices"]["disks"].append({"name": "containerdisk", "cdrom": {}})
    assert ensure_state.decide(a_request(image="x"), live) is None
