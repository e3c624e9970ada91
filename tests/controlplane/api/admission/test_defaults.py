# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from kubevirt_api import names

from controlplane.api.admission import defaults
from controlplane.api.admission.validate.check import check_instance
from controlplane.api.objects.decode import decode, decode_vm, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration, LiveUpdateConfiguration
from tests.controlplane.api import golden

CONFIGURATION = KubeVirtConfiguration()
MACHINES = [name for name in golden.NAMES if name.startswith("vm-")]
INSTANCES = [name for name in golden.NAMES if name.startswith("vmi-")]


def instance(name: str, configuration: KubeVirtConfiguration = CONFIGURATION) -> dict[str, Any]:
    return defaults.default_instance(golden.load(name), configuration, "seed")


def of_template(name: str) -> dict[str, Any]:
    spec = golden.load(name)["spec"]["template"]["spec"]
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec}
    return defaults.default_instance(vmi, CONFIGURATION, "seed")


@pytest.mark.parametrize("name", MACHINES)
def test_a_vm_gets_architecture_machine_type_identity_and_finalizer_and_nothing_else(name: str) -> None:
    before = golden.load(name)
    after = defaults.default_vm(copy.deepcopy(before), CONFIGURATION, "seed")

    spec = after["spec"]["template"]["spec"]
    assert spec.pop("architecture") == "amd64"
    assert spec["domain"]["machine"].pop("type") == "q35"
    assert spec["domain"]["firmware"].pop("uuid")
    assert spec["domain"]["firmware"].pop("serial")
    assert after["metadata"].pop("finalizers") == [names.VM_FINALIZER]
    original = before["spec"]["template"]["spec"]
    original.pop("architecture", None)
    for holder, field in (("machine", "type"), ("firmware", "uuid"), ("firmware", "serial")):
        original["domain"].setdefault(holder, {}).pop(field, None)
    assert after == before


@pytest.mark.parametrize("name", MACHINES)
def test_an_update_generates_no_identity(name: str) -> None:
    after = defaults.default_vm(golden.load(name), CONFIGURATION, None)

    assert after["spec"]["template"]["spec"]["domain"].get("firmware") == golden.load(name)["spec"]["template"]["spec"][
        "domain"
    ].get("firmware")


@pytest.mark.parametrize("name", MACHINES)
def test_a_typed_template_gets_the_same_defaults_as_a_manifest(name: str) -> None:
    template = encode(decode_vm(golden.load(name)).spec.template.spec)
    filled = defaults.default_instance({"metadata": {"name": name}, "spec": template}, CONFIGURATION, "seed")

    assert decode_vmi(filled).spec == decode_vmi(of_template(name)).spec
    assert check_instance(filled, CONFIGURATION) == []


@pytest.mark.parametrize(
    ("given", "filled"), [(0, 10), (None, 10), (7, 7), (False, False), ("", ""), (0.0, 0.0)], ids=repr
)
def test_a_malformed_number_of_a_probe_stays_for_validation(given: Any, filled: Any) -> None:
    """A default in its place would pass, and the user would never learn of the mistake."""
    probe = {"tcpSocket": {"port": 22}, "periodSeconds": given}
    vmi = golden.changed(golden.load("vmi-efi"), "spec/livenessProbe", probe)

    period = defaults.default_instance(vmi, CONFIGURATION, "seed")["spec"]["livenessProbe"]["periodSeconds"]

    assert (period, type(period)) == (filled, type(filled))


@pytest.mark.parametrize("amount", ["5000", "1e99"])
def test_a_machine_of_more_cpus_than_its_board_takes_gets_as_many_as_that(amount: str) -> None:
    """Its Pod asks for all of them, and the scheduler says that no node has so many."""
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/resources", {"limits": {"cpu": amount}})

    assert defaults.default_instance(vmi, CONFIGURATION, "seed")["spec"]["domain"]["cpu"]["sockets"] == 255


ODD: list[Any] = [None, "", "on", 0, 1, -1.5, 2**70, True, False, "1e99", "9" * 5000]
ODD += [[], ["x"], [None], [[]], [{}], {}, {"x": 1}, {"x": {}}, {"x": {"x": []}}]
ODD += [[{"name": []}], [{"name": {}, "disk": 1, "cdrom": 2, "containerDisk": 3}]]
TOUCHED = [
    *("metadata", "metadata/finalizers", "spec", "spec/livenessProbe", "spec/readinessProbe/periodSeconds"),
    *(f"spec/{field}" for field in ("architecture", "evictionStrategy", "networks", "volumes", "domain")),
    *(f"spec/volumes/0{field}" for field in ("", "/name", "/containerDisk", "/containerDisk/image")),
    *(f"spec/domain/machine{field}" for field in ("", "/type")),
    *(f"spec/domain/firmware{field}" for field in ("", "/uuid", "/serial")),
    *(f"spec/domain/resources{field}" for field in ("", "/requests", "/limits")),
    *(f"spec/domain/resources/requests/{field}" for field in ("cpu", "memory")),
    *(f"spec/domain/resources/limits/{field}" for field in ("cpu", "memory")),
    *(f"spec/domain/memory{field}" for field in ("", "/guest")),
    *(f"spec/domain/cpu{field}" for field in ("", "/cores", "/sockets", "/threads", "/model")),
    *(f"spec/domain/devices/watchdog{field}" for field in ("", "/name", "/i6300esb", "/i6300esb/action")),
    *(f"spec/domain/devices{field}" for field in ("", "/disks", "/interfaces", "/autoattachPodInterface")),
    *(f"spec/domain/devices/disks/0{field}" for field in ("", "/name", "/disk", "/disk/bus", "/cdrom", "/cdrom/tray")),
    *(f"spec/domain/features{field}" for field in ("", "/acpi", "/hyperv", "/acpi/enabled")),
    *(f"spec/domain/clock{field}" for field in ("", "/timer", "/timer/hpet", "/timer/hpet/present")),
]


def with_value(place: str, value: Any) -> dict[str, Any]:
    """Return an object with one value at `place` and nothing else."""
    for step in reversed(place.split("/")):
        value = [value] if step == "0" else {step: value}
    return dict(value)


@pytest.mark.parametrize("place", TOUCHED)
def test_no_storable_value_makes_a_default_raise_or_is_overwritten(place: str) -> None:
    for odd in ODD:
        vmi = with_value(place, odd)
        vm = {"metadata": vmi.get("metadata", {}), "spec": {"template": {"spec": vmi.get("spec", {})}}}
        for make, given in ((defaults.default_instance, vmi), (defaults.default_vm, vm)):
            filled = make(copy.deepcopy(given), CONFIGURATION, "seed")

            msgspec.json.encode(filled)
            assert make(filled, CONFIGURATION, "other") is filled
            assert survives(given, filled), (place, odd)


def survives(given: Any, filled: Any) -> bool:
    """Whether everything given is still there; empty values do not count."""
    if not given:
        return True
    if isinstance(given, dict):
        return isinstance(filled, dict) and all(survives(value, filled.get(name)) for name, value in given.items())
    if isinstance(given, list):
        return isinstance(filled, list) and all(
            survives(before, after) for before, after in zip(given, filled, strict=False)
        )
    return bool(given == filled)


@pytest.mark.parametrize("name", golden.NAMES)
def test_defaults_are_idempotent(name: str) -> None:
    if name in MACHINES:
        once = defaults.default_vm(golden.load(name), CONFIGURATION, "seed")
        assert defaults.default_vm(once, CONFIGURATION, "other seed") is once
    if name in INSTANCES:
        once = instance(name)
        assert defaults.default_instance(once, CONFIGURATION, "other seed") is once


def test_the_input_is_not_changed() -> None:
    given = golden.load("vmi-masquerade")
    defaults.default_instance(given, CONFIGURATION, "seed")

    assert given == golden.load("vmi-masquerade")


def test_generated_identities_are_unique() -> None:
    first = defaults.default_vm(golden.load("vm-cirros"), CONFIGURATION, "a")["spec"]["template"]["spec"]["domain"]
    second = defaults.default_vm(golden.load("vm-cirros"), CONFIGURATION, "b")["spec"]["template"]["spec"]["domain"]

    assert len({*first["firmware"].values(), *second["firmware"].values()}) == 4


def test_a_minimal_vm_gets_all_defaults() -> None:
    spec = of_template("vm-cirros")["spec"]
    domain = spec["domain"]

    assert domain["memory"] == {"guest": "64M"}
    assert domain["cpu"] == {"cores": 1, "sockets": 1, "threads": 1, "maxSockets": 4, "model": "host-model"}
    assert domain["machine"] == {"type": "q35"}
    assert domain["features"] == {"acpi": {"enabled": True}}
    assert domain["devices"]["interfaces"] == [{"name": "default", "masquerade": {}}]
    assert spec["networks"] == [{"name": "default", "pod": {}}]
    assert spec["volumes"][0]["containerDisk"]["imagePullPolicy"] == "Always"
    assert spec["evictionStrategy"] == "None"


ROOM: dict[str, tuple[dict[str, Any], dict[str, Any], int | None]] = {
    # domain, configuration, maxSockets
    "four times as many": ({"cpu": {"sockets": 2, "cores": 2}}, {}, 8),
    "sockets that follow from a limit": ({"resources": {"limits": {"cpu": "3"}}}, {}, 12),
    "what it says itself": ({"cpu": {"sockets": 2, "maxSockets": 3}}, {}, 3),
    "another ratio": ({"cpu": {"sockets": 2}}, {"live_update_configuration": {"maxHotplugRatio": 2}}, 4),
    "a number for all": ({"cpu": {"sockets": 2}}, {"live_update_configuration": {"maxCpuSockets": 16}}, 16),
    "a number for all, and more from the start": (
        {"cpu": {"sockets": 32}},
        {"live_update_configuration": {"maxCpuSockets": 16}},
        32,
    ),
    "no more than the board takes": ({"cpu": {"sockets": 50, "cores": 2}}, {}, 127),
    "as many as it has, where the board takes no more": ({"cpu": {"sockets": 255}}, {}, 255),
    "nothing changes while a machine runs": ({"cpu": {"sockets": 2}}, {"vm_rollout_strategy": "Stage"}, None),
    "a guest that would not hear of it": ({"features": {"acpi": {"enabled": False}}}, {}, None),
    "what is no number": ({"cpu": {"sockets": "two"}}, {}, None),
}


@pytest.mark.parametrize(("domain", "settings", "expected"), ROOM.values(), ids=ROOM)
def test_max_sockets_leaves_room_for_hotplug(
    domain: dict[str, Any], settings: dict[str, Any], expected: int | None
) -> None:
    live = decode(settings.get("live_update_configuration", {}), LiveUpdateConfiguration)
    configuration = msgspec.structs.replace(CONFIGURATION, **{**settings, "live_update_configuration": live})
    vmi = {"metadata": {}, "spec": {"domain": {"memory": {"guest": "64M"}, **domain}}}
    filled = defaults.default_instance(vmi, configuration, "seed")
    assert filled["spec"]["domain"]["cpu"].get("maxSockets") == expected


MEMORY_ROOM: dict[str, tuple[Any, dict[str, Any], Any]] = {
    # memory, configuration, maxGuest
    "four times as much": ({"guest": "1Gi"}, {}, "4Gi"),
    "what it says itself": ({"guest": "1Gi", "maxGuest": "2Gi"}, {}, "2Gi"),
    "another ratio": ({"guest": "1536Mi"}, {"live_update_configuration": {"maxHotplugRatio": 2}}, "3Gi"),
    "no more than it has": ({"guest": "1Gi"}, {"live_update_configuration": {"maxHotplugRatio": 1}}, None),
    "an amount for all": ({"guest": "1Gi"}, {"live_update_configuration": {"maxGuest": "3Gi"}}, "3Gi"),
    "an amount for all, and more from the start": (
        {"guest": "4Gi"},
        {"live_update_configuration": {"maxGuest": "3Gi"}},
        None,
    ),
    "an amount for all that is none": ({"guest": "1Gi"}, {"live_update_configuration": {"maxGuest": "lots"}}, None),
    "no whole blocks for all": ({"guest": "1Gi"}, {"live_update_configuration": {"maxGuest": "2049Mi"}}, None),
    "no more than can be addressed everywhere": ({"guest": "256Gi"}, {}, "512Gi"),
    "none for one that is as large as that": ({"guest": "512Gi"}, {}, None),
    "nothing changes while a machine runs": ({"guest": "1Gi"}, {"vm_rollout_strategy": "Stage"}, None),
    "a small guest": ({"guest": "1022Mi"}, {}, None),
    "no whole blocks": ({"guest": "1025Mi"}, {}, None),
    "what is no amount": ({"guest": "lots"}, {}, None),
    "what is none of any kind": ({"guest": [1]}, {}, None),
}


@pytest.mark.parametrize(("memory", "settings", "expected"), MEMORY_ROOM.values(), ids=MEMORY_ROOM)
def test_max_guest_leaves_room_for_hotplug(memory: Any, settings: dict[str, Any], expected: Any) -> None:
    live = decode(settings.get("live_update_configuration", {}), LiveUpdateConfiguration)
    configuration = msgspec.structs.replace(CONFIGURATION, **{**settings, "live_update_configuration": live})
    filled = defaults.default_instance({"spec": {"domain": {"memory": memory}}}, configuration, "seed")
    assert filled["spec"]["domain"]["memory"].get("maxGuest") == expected


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ({"resources": {"requests": {"memory": "64M"}}}, "64M"),
        ({"resources": {"limits": {"memory": "1G"}}}, "1G"),
        ({"resources": {"requests": {"memory": "64M"}, "limits": {"memory": "1G"}}}, "64M"),
        ({"memory": {"guest": "32M"}, "resources": {"requests": {"memory": "64M"}}}, "32M"),
    ],
    ids=["request", "limit", "request first", "given stays"],
)
def test_guest_memory_defaults_to_the_memory_request(domain: dict[str, Any], expected: str) -> None:
    filled = defaults.default_instance({"metadata": {}, "spec": {"domain": domain}}, CONFIGURATION, "seed")
    assert filled["spec"]["domain"]["memory"]["guest"] == expected


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({}, {"action": "reset"}),
        (None, {"action": "reset"}),
        ({"action": ""}, {"action": "reset"}),
        ({"action": "poweroff"}, {"action": "poweroff"}),
    ],
    ids=repr,
)
def test_a_watchdog_resets_by_default(given: Any, filled: Any) -> None:
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/devices/watchdog", {"name": "dog", "i6300esb": given})

    instance = defaults.default_instance(vmi, CONFIGURATION, "seed")

    assert instance["spec"]["domain"]["devices"]["watchdog"] == {"name": "dog", "i6300esb": filled}
    assert check_instance(instance, CONFIGURATION) == []


def test_every_volume_gets_a_disk_on_the_default_bus() -> None:
    assert of_template("vm-default-disks")["spec"]["domain"]["devices"]["disks"] == [
        {"name": "containerdisk", "disk": {"bus": "sata"}},
        {"name": "cloudinitdisk", "disk": {"bus": "sata"}},
    ]


def test_an_instance_gets_our_finalizer_after_its_own() -> None:
    vmi = golden.changed(golden.load("vmi-efi"), "metadata/finalizers", ["example.com/mine"])

    filled = defaults.default_instance(vmi, CONFIGURATION, "seed")

    assert filled["metadata"]["finalizers"] == ["example.com/mine", names.VMI_FINALIZER]


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        pytest.param({"resources": {"limits": {"cpu": "1500m"}}}, (2, 1, 1), id="limit, rounded up"),
        pytest.param({"resources": {"requests": {"cpu": "3"}}}, (3, 1, 1), id="request"),
        pytest.param({"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}, (2, 1, 1), id="limit first"),
        pytest.param({"cpu": {"cores": 2}, "resources": {"limits": {"cpu": "4"}}}, (None, 2, None), id="given stays"),
    ],
)
def test_the_topology_follows_the_cpu_resources_unless_given(domain: dict[str, Any], expected: tuple[Any, ...]) -> None:
    vmi = golden.load("vmi-efi")
    vmi["spec"]["domain"].update(domain)

    cpu = defaults.default_instance(vmi, CONFIGURATION, "seed")["spec"]["domain"]["cpu"]

    assert tuple(cpu.get(part) for part in ("sockets", "cores", "threads")) == expected


def test_a_cpu_limit_alone_becomes_the_request() -> None:
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/resources", {"limits": {"cpu": "2"}})

    filled = defaults.default_instance(vmi, CONFIGURATION, "seed")

    assert filled["spec"]["domain"]["resources"]["requests"] == {"cpu": "2"}


def test_the_configured_cpu_request_does_not_apply_to_a_vm_with_a_limit() -> None:
    """The request could exceed the limit, and the API server would refuse the Pod."""
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/resources", {"limits": {"cpu": "2"}})
    configuration = KubeVirtConfiguration(cpu_request="4")

    filled = defaults.default_instance(vmi, configuration, "seed")

    assert filled["spec"]["domain"]["resources"]["requests"] == {"cpu": "2"}


def test_no_interface_is_added_when_that_is_switched_off() -> None:
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/devices/autoattachPodInterface", False)

    assert "networks" not in defaults.default_instance(vmi, CONFIGURATION, "seed")["spec"]


def test_the_configuration_decides_machine_type_cpu_model_and_cpu_request() -> None:
    configuration = KubeVirtConfiguration(cpu_model="Nehalem", machine_type="pc", cpu_request="300m")

    domain = instance("vmi-efi", configuration)["spec"]["domain"]

    assert (domain["cpu"]["model"], domain["machine"]["type"]) == ("Nehalem", "pc")
    assert domain["resources"]["requests"] == {"cpu": "300m"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("registry:5000/a", "Always"),
        ("registry:5000/a:1", "IfNotPresent"),
        ("a@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_the_pull_policy_is_always_unless_the_image_is_pinned(image: str, policy: str) -> None:
    assert defaults.pull_policy(image) == policy


@pytest.mark.parametrize("given", [{}, {"periodSeconds": 0, "failureThreshold": None}])
@pytest.mark.parametrize("name", ["livenessProbe", "readinessProbe"])
def test_a_probe_gets_the_defaults_of_a_pod(name: str, given: dict[str, Any]) -> None:
    vmi = golden.changed(golden.load("vmi-efi"), f"spec/{name}", {"guestAgentPing": {}, **given})

    filled = defaults.default_instance(vmi, CONFIGURATION, "seed")["spec"]

    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert filled[name] == {"guestAgentPing": {}, **numbers}
    assert {"livenessProbe", "readinessProbe"} & filled.keys() == {name}, "and there is none where there was none"


def test_given_probe_numbers_stay() -> None:
    before, after = golden.load("vmi-probes")["spec"], instance("vmi-probes")["spec"]

    assert after["livenessProbe"] == before["livenessProbe"] | {"successThreshold": 1}
    assert after["readinessProbe"]["successThreshold"] == 2


def test_a_virtual_machine_keeps_its_template_as_written() -> None:
    """As upstream: defaults of probes are set on the instance only."""
    path = "spec/template/spec/livenessProbe"
    vm = golden.changed(golden.load("vm-full"), path, {"guestAgentPing": {}})

    assert defaults.default_vm(vm, CONFIGURATION, "seed")["spec"]["template"]["spec"]["livenessProbe"] == {
        "guestAgentPing": {}
    }
