# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from controlplane.virt_controller.metrics.machines import Machines, status_group


def an_object(name: str, **status: Any) -> bytes:
    meta = {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-31T12:00:00Z"}
    return json.dumps({"metadata": meta, "spec": {"running": True}, "status": status}).encode()


def everything(
    vms: tuple[bytes, ...] = (), vmis: tuple[bytes, ...] = (), *, is_leader: bool = True, strategy: str | None = None
) -> list[str]:
    registry = CollectorRegistry()
    registry.register(Machines(lambda: vms, lambda: vmis, lambda: is_leader, tuple, lambda: strategy))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def shown(vms: tuple[bytes, ...] = (), vmis: tuple[bytes, ...] = (), *, is_leader: bool = True) -> list[str]:
    """Return all but whether evictions are blocked."""
    return [line for line in everything(vms, vmis, is_leader=is_leader) if "non_evictable" not in line]


def test_a_machine_is_shown_with_its_status_its_last_transition_and_its_creation() -> None:
    conditions = [
        {"type": "Ready", "lastTransitionTime": "2026-01-31T12:00:10Z"},
        {"type": "Paused", "lastTransitionTime": "2026-01-31T12:00:20Z"},
        {"type": "RestartRequired", "lastTransitionTime": "2026-01-31T13:00:00Z"},
    ]

    assert shown((an_object("web", printableStatus="Paused", conditions=conditions),)) == [
        'kubevirt_vm_info{name="web",namespace="shop",status="Paused",status_group="non_running"} 1.0',
        'kubevirt_vm_create_date_timestamp_seconds{name="web",namespace="shop"} 1.7698608e+09',
        'kubevirt_vm_non_running_status_last_transition_timestamp_seconds{name="web",namespace="shop"} 1.76986082e+09',
    ]


@pytest.mark.parametrize(
    ("word", "group"),
    [
        ("Starting", "starting"),
        ("Running", "running"),
        ("Stopped", "non_running"),
        ("Terminating", "non_running"),
        ("CrashLoopBackOff", "error"),
        ("ErrorUnschedulable", "error"),
        ("ErrImagePull", "error"),
        ("Unknown", "error"),
        ("", "error"),
        ("a word of tomorrow", "error"),
    ],
)
def test_statuses_are_grouped_as_upstream(word: str, group: str) -> None:
    assert status_group(word) == group


def test_an_instance_is_shown_with_its_phase_node_and_addresses() -> None:
    interfaces = [{"name": "default", "ipAddress": "10.244.0.7"}, {"name": "v6", "ipAddress": "fd10::1"}]

    first, *rest = shown(vmis=(an_object("web", phase="Running", nodeName="n1", interfaces=interfaces),))

    assert first == 'kubevirt_vmi_info{name="web",namespace="shop",node="n1",phase="running"} 1.0'
    labels = 'name="web",namespace="shop",node="n1",type="ExternalInterface"'
    assert rest == [
        f'kubevirt_vmi_status_addresses{{address="{address}",{labels},vnic_name="{name}"}} 1.0'
        for name, address in (("default", "10.244.0.7"), ("v6", "fd10::1"))
    ]


@pytest.mark.parametrize(
    ("interfaces", "shown_addresses"),
    [
        *(([{"name": "default", "ipAddress": text}], 0) for text in ("", "no", 'fe80::1%"} 1\nx 2', "1.2.3.4.5")),
        ([{"ipAddress": "10.0.0.1"}], 0),
        ([{"name": "a", "ipAddress": "10.0.0.1"}] * 2, 1),
    ],
    ids=["empty", "no address", "injected lines", "five numbers", "without a name", "two of one name"],
)
def test_only_valid_addresses_of_named_interfaces_are_shown_once(
    interfaces: list[dict[str, str]], shown_addresses: int
) -> None:
    assert len(shown(vmis=(an_object("web", phase="Running", interfaces=interfaces),))) == 1 + shown_addresses


def test_an_unknown_phase_gets_no_label_of_its_own() -> None:
    (line,) = shown(vmis=(an_object("web", phase="Dancing"),))

    assert 'phase="unknown"' in line


def test_only_the_leader_shows_machines() -> None:
    assert shown((an_object("web"),), (an_object("web"),), is_leader=False) == []


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"status": 1}', b"\xff", b'{"metadata": {"name": 7}}'])
def test_an_unreadable_object_hides_no_other(raw: bytes) -> None:
    assert len(shown((raw, an_object("web", printableStatus="Running")))) == 2


@pytest.mark.parametrize("stamp", ["", "soon", None, "2026-13-01T00:00:00Z"])
def test_an_invalid_timestamp_is_omitted(stamp: str | None) -> None:
    conditions = [{"type": "Ready", "lastTransitionTime": stamp}]
    lines = shown((an_object("web", printableStatus="Running", conditions=conditions),))

    assert not [line for line in lines if "last_transition" in line]


@pytest.mark.parametrize(
    ("own", "default", "migratable", "value"),
    [
        pytest.param("LiveMigrate", None, "False", 1, id="cannot be migrated"),
        pytest.param("LiveMigrate", None, None, 1, id="not known yet, as upstream"),
        pytest.param("LiveMigrate", None, "True", 0, id="can be migrated"),
        pytest.param(None, "LiveMigrate", "False", 1, id="by the configuration"),
        pytest.param("None", "LiveMigrate", "False", 0, id="its own strategy goes first"),
        pytest.param("LiveMigrateIfPossible", None, "False", 0, id="it is stopped instead"),
        pytest.param(None, None, "False", 0, id="no strategy"),
    ],
)
def test_an_instance_that_blocks_evictions_is_shown(
    own: str | None, default: str | None, migratable: str | None, value: int
) -> None:
    conditions = [] if migratable is None else [{"type": "LiveMigratable", "status": migratable}]
    vmi = json.loads(an_object("web", nodeName="n1", conditions=conditions))
    vmi["spec"] = {"evictionStrategy": own}

    (line,) = (
        line for line in everything(vmis=(json.dumps(vmi).encode(),), strategy=default) if "non_evictable" in line
    )

    assert line == f'kubevirt_vmi_non_evictable{{name="web",namespace="shop",node="n1"}} {value}.0'


def test_interfaces_are_shown_of_machines_and_instances() -> None:
    interfaces = [
        {"name": "default", "masquerade": {}},
        {"name": "second", "bridge": {}, "model": "e1000e"},
        {"name": "lost", "masquerade": {}},
    ]
    networks = [{"name": "default", "pod": {}}, {"name": "second", "multus": {"networkName": "shop/lan"}}]
    spec = {"domain": {"devices": {"interfaces": interfaces}}, "networks": networks}
    vm, vmi = json.loads(an_object("web")), json.loads(an_object("web"))
    vm["spec"], vmi["spec"] = {"template": {"spec": spec}}, spec

    lines = [line for line in shown((json.dumps(vm).encode(),), (json.dumps(vmi).encode(),)) if "vnic_info" in line]

    rest = 'name="web",namespace="shop",network="'
    expected = [
        f'binding_name="masquerade",binding_type="core",model="<none>",{rest}pod networking",vnic_name="default"',
        f'binding_name="bridge",binding_type="core",model="e1000e",{rest}shop/lan",vnic_name="second"',
    ]
    assert lines == [f"kubevirt_{kind}_vnic_info{{{labels}}} 1.0" for kind in ("vm", "vmi") for labels in expected]
