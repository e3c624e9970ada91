# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From options to a VirtualMachine."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.kinds import REPLICA_SET, VM, VMI, Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import argspec, manifest


def declared(params: dict[str, Any]) -> dict[str, Any]:
    return manifest.build(params).obj


NAMED = {"name": "web", "namespace": "default"}


def test_friendly_options_make_a_whole_machine() -> None:
    vm = declared(
        {
            **NAMED,
            "cpu": {"cores": 2, "model": None},
            "memory": "1Gi",
            "image": "registry/guest:1",
            "cloud_init": {"user_data": "#!/bin/sh", "type": "no_cloud"},
            "interfaces": [{"name": "default", "masquerade": {}}],
            "networks": [{"name": "default", "pod": {}}],
            "labels": {"app": "web"},
            "running": False,
        }
    )
    assert vm == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "runStrategy": "Halted",
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "domain": {
                        "cpu": {"cores": 2},
                        "memory": {"guest": "1Gi"},
                        "devices": {
                            "disks": [
                                {"name": "containerdisk", "disk": {"bus": "virtio"}},
                                {"name": "cloudinit", "disk": {"bus": "virtio"}},
                            ],
                            "interfaces": [{"name": "default", "masquerade": {}}],
                        },
                    },
                    "volumes": [
                        {"name": "containerdisk", "containerDisk": {"image": "registry/guest:1"}},
                        {"name": "cloudinit", "cloudInitNoCloud": {"userData": "#!/bin/sh"}},
                    ],
                    "networks": [{"name": "default", "pod": {}}],
                },
            },
        },
    }


def test_options_override_spec_and_spec_overrides_the_definition() -> None:
    definition = {
        "spec": {
            "running": True,
            "template": {"spec": {"domain": {"cpu": {"cores": 1, "threads": 2}}, "volumes": [{"name": "a", "x": 1}]}},
        }
    }
    vm = declared(
        {
            **NAMED,
            "definition": definition,
            "spec": {"domain": {"cpu": {"cores": 3}}, "hostname": "h"},
            "cpu": {"cores": 4},
            "volumes": [{"name": "a", "y": 2}, {"name": "b"}],
            "run_strategy": "Manual",
        }
    )
    machine = vm["spec"]["template"]["spec"]
    assert machine["domain"]["cpu"] == {"cores": 4, "threads": 2}
    assert machine["hostname"] == "h"
    assert machine["volumes"] == [{"name": "a", "y": 2}, {"name": "b"}], "y is another kind of source than x"
    assert vm["spec"]["runStrategy"] == "Manual"
    assert "running" not in vm["spec"]
    assert definition["spec"]["running"] is True, "the user's own value is left as it is"


def test_labels_alone_do_not_touch_the_template() -> None:
    vm = declared({**NAMED, "labels": {"a": "b"}})
    assert "spec" not in vm
    assert not manifest.has_machine({**NAMED, "labels": {"a": "b"}})


def test_null_over_a_definition_stays_because_it_removes_the_field() -> None:
    definition = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    vm = declared({**NAMED, "definition": definition, "spec": {"nodeSelector": None, "affinity": None}})
    machine = vm["spec"]["template"]["spec"]
    assert (machine["nodeSelector"], machine["affinity"]) == (None, None)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        pytest.param({"definition": {"metadata": {"name": "other"}}}, "leave one out", id="two names"),
        pytest.param({"labels": {"v": 1}}, "labels[v]: the value is not a text; put it into quotation", id="a number"),
        pytest.param(
            {"definition": {"spec": {"running": True, "runStrategy": "Always"}}}, "exclude one another", id="both"
        ),
        pytest.param({"volumes": [{"emptyDisk": {}}]}, "volumes[0]: the item has no name", id="nameless volume"),
        pytest.param(
            {"spec": {"domain": {"memory": "1Gi"}}, "memory": "2Gi"},
            "memory cannot be laid over spec.template.spec.domain.memory, which is a text: a mapping is needed there",
            id="a text below an option",
        ),
        pytest.param({"spec": {"x": ["y" * 1024] * 1100}}, "beyond 1 MiB", id="too large"),
    ],
)
def test_bad_options_are_refused_by_name(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        declared({**NAMED, **params})
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("kind", "place"),
    [(VM, ("spec", "template")), (REPLICA_SET, ("spec", "template")), (VMI, ())],
    ids=lambda entry: getattr(entry, "name", None),
)
def test_retries_and_eviction_are_set_where_their_kind_has_them(kind: Kind, place: tuple[str, ...]) -> None:
    params = {**NAMED, "further_attempts": 0, "run_timeout": 90, "eviction_strategy": "LiveMigrate"}
    inside = manifest.build(params, kind).obj
    for step in place:
        inside = inside[step]

    annotations = {"virtops.kubevirt/further-attempts": "0", "virtops.kubevirt/run-timeout-seconds": "90"}
    assert inside["metadata"]["annotations"] == annotations
    assert inside["spec"]["evictionStrategy"] == "LiveMigrate"


@pytest.mark.parametrize("option", ["further_attempts", "run_timeout"])
def test_negative_numbers_are_refused(option: str) -> None:
    with pytest.raises(BadArgument, match=f"{option} is -1; it must be 0 or more"):
        declared({**NAMED, option: -1})


def test_every_option_of_a_machine_is_applied() -> None:
    """An option in the argument spec without a row here would be ignored."""
    assert argspec.machine().keys() <= manifest.OPTIONS.keys()
