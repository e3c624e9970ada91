# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.problem import Problem
from controlplane.api.admission.validate.check import check_object
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.registry import KINDS, by_name
from tests.controlplane.api import golden

CONFIGURATION = KubeVirtConfiguration()
BY_NAME = by_name(KINDS)


def problems_of(manifest: dict[str, Any], configuration: KubeVirtConfiguration = CONFIGURATION) -> list[Problem]:
    kind = BY_NAME[manifest["kind"]]
    return check_object(manifest, configuration, kind=kind.root, rules=kind.rules)


@pytest.mark.parametrize("name", golden.NAMES)
def test_good_manifests_have_no_problems(name: str) -> None:
    assert problems_of(golden.load(name)) == []


def test_all_problems_are_reported_at_once() -> None:
    vm = golden.load("vm-full")
    for path, value in (
        ("spec/template/spec/domain/cpu/cores", -1),
        ("spec/template/spec/domain/machine/type", "microvm"),
        ("spec/template/spec/domain/devices/disks/0/name", "other"),
        ("spec/template/spec/networks/0/pod/vmNetworkCIDR", "x"),
        ("spec/template/spec/tolerations", [{}]),
        ("spec/running", False),
    ):
        vm = golden.changed(vm, path, value)

    assert len(problems_of(vm)) == 6


def test_a_rule_does_not_repeat_a_problem_of_the_same_field() -> None:
    vm = golden.changed(
        golden.load("vm-full"), "spec/template/spec/volumes/0", {"name": "root", "configMap": {"name": "x"}}
    )

    assert [problem.path for problem in problems_of(vm)] == ["spec.template.spec.volumes[0].configMap"]


@pytest.mark.parametrize(
    "value",
    [None, False, [], {}, [{}], 2**80, "\x00\ud800"],
    ids=repr,
)
def test_no_value_anywhere_raises(value: Any) -> None:
    """Every field of a manifest is replaced by a value of every type."""
    for name in ("vm-full", "kubevirt", "pool-cirros"):
        manifest = golden.load(name)
        for path in list(golden.paths(manifest)):
            if path not in ("apiVersion", "kind"):
                problems_of(golden.changed(manifest, path, value))


@pytest.mark.parametrize("name", ["userData", "networkData", "userDataBase64", "networkDataBase64"])
def test_secrets_are_never_shown(name: str) -> None:
    secret = "hunter2-" * 300
    vm = golden.changed(golden.load("vm-full"), f"spec/template/spec/volumes/2/cloudInitNoCloud/{name}", secret)

    problems = problems_of(vm)

    assert problems
    assert not [problem for problem in problems if "hunter2" in str(problem)]


def test_configured_machine_types_replace_the_built_in_ones() -> None:
    vm = golden.load("vm-full")
    configuration = KubeVirtConfiguration(emulated_machines=("pc-q35-9.*",))

    assert [str(problem) for problem in problems_of(vm, configuration)] == [
        'spec.template.spec.domain.machine.type: "q35" is not a machine type of this cluster; allowed: pc-q35-9.*'
    ]


def test_a_field_of_the_wrong_type_does_not_hide_other_problems() -> None:
    vm = golden.load("vm-full")
    for path, value in (
        ("spec/template/spec/domain/cpu/cores", "2"),
        ("spec/template/spec/domain/machine/type", "microvm"),
        ("spec/template/spec/domain/devices/disks/0/name", "other"),
        ("spec/template/spec/domain/resources/requests/cpu", {}),
        ("spec/running", True),
    ):
        vm = golden.changed(vm, path, value)

    assert [problem.path.removeprefix("spec.template.spec.") for problem in problems_of(vm)] == [
        "domain.cpu.cores",
        "domain.resources.requests[cpu]",
        "spec.running",
        "domain.machine.type",
        "domain.devices.disks[0].name",
    ]


def test_an_entry_that_is_too_long_does_not_hide_other_problems() -> None:
    """Nor does a map key that is a number."""
    vm = golden.load("vm-full")
    for path, value in (
        ("spec/template/spec/domain/cpu/cores", "2"),
        ("spec/template/spec/dnsConfig", {"nameservers": ["10.96.0.10"], "searches": ["a" * 300]}),
        ("spec/template/spec/nodeSelector", {"1": 2}),
        ("spec/template/spec/domain/machine/type", "microvm"),
    ):
        vm = golden.changed(vm, path, value)

    assert [problem.path.removeprefix("spec.template.spec.") for problem in problems_of(vm)] == [
        "nodeSelector[1]",
        "dnsConfig.searches[0]",
        "domain.cpu.cores",
        "domain.machine.type",
    ]


def test_an_object_without_a_spec_is_refused() -> None:
    vm = golden.changed(golden.load("vm-full"), "spec", ...)

    assert [str(problem) for problem in problems_of(vm)] == ["spec: must be an object, got null"]


@pytest.mark.parametrize("field", ["volumes", "networks", "domain/devices/disks", "domain/devices/interfaces"])
def test_an_undecodable_list_causes_no_false_problems_in_its_partner(field: str) -> None:
    vm = golden.changed(golden.load("vm-full"), f"spec/template/spec/{field}", "text")

    assert len(problems_of(vm)) == 1


MIGRATION_NUMBERS = (
    "parallelMigrationsPerCluster",
    "parallelOutboundMigrationsPerNode",
    "completionTimeoutPerGiB",
    "progressTimeout",
)
CONFIGURED = [
    pytest.param(
        "migrations/allowPostCopy", True, "known to KubeVirt, not built in this version; remove it", id="unbuilt"
    ),
    pytest.param("migrations/bandwidthPerMigration", "-1", "is negative; must be 0", id="negative bandwidth"),
    pytest.param("migrations/bandwidthPerMigration", "fast", "is not a quantity", id="no quantity"),
    *(
        pytest.param(f"migrations/{setting}", -1, "must be at least 0", id=f"negative {setting}")
        for setting in MIGRATION_NUMBERS
    ),
    pytest.param("machinType", "q35", "no such field; did you mean machineType?", id="misspelt"),
    pytest.param("developerConfiguration/useEmulation", "yes", "true or false, got a string", id="wrong type"),
    pytest.param("developerConfiguration/cpuAllocationRatio", 0, "must be from 1 to 1000", id="out of range"),
]


@pytest.mark.parametrize(("path", "value", "words"), CONFIGURED)
def test_the_configuration_is_checked_by_the_same_rules(path: str, value: Any, words: str) -> None:
    (problem,) = problems_of(golden.changed(golden.load("kubevirt"), f"spec/configuration/{path}", value))

    assert problem.path == f"spec.configuration.{path.replace('/', '.')}"
    assert words in problem.message


@pytest.mark.parametrize("number", [0, 1, 123_456_789])
def test_a_setting_of_migrations_may_be_any_number_that_is_not_negative(number: int) -> None:
    """As upstream, whose examples have such numbers."""
    settings = {**dict.fromkeys(MIGRATION_NUMBERS, number), "bandwidthPerMigration": number}
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/migrations", settings)

    assert problems_of(manifest) == []


def test_disabled_migration_switches_with_upstream_defaults_are_accepted() -> None:
    switches = ("allowPostCopy", "disableTLS", "matchSELinuxLevelOnMigration", "unsafeMigrationOverride")
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/migrations", dict.fromkeys(switches, False))

    assert problems_of(manifest) == []


@pytest.mark.parametrize(
    ("limit", "is_good"), [("1Mi", True), ("64Ti", True), ("1048575", False), (64 * 2**40 + 1, False)], ids=str
)
def test_the_container_disk_size_has_a_maximum(limit: str | int, is_good: bool) -> None:
    manifest = golden.changed(golden.load("kubevirt"), "spec/configuration/containerDiskLimit", limit)

    where = ["spec.configuration.containerDiskLimit"]
    assert [problem.path for problem in problems_of(manifest)] == ([] if is_good else where)


def test_the_paths_of_an_instance_begin_at_its_spec() -> None:
    vmi = golden.changed(golden.load("vmi-efi"), "spec/domain/memory/guest", "1")
    vmi = golden.changed(vmi, "spec/volumes/0/containerDisk/imagePullPolicy", 1)

    assert {problem.path for problem in problems_of(vmi)} == {
        "spec.domain.memory.guest",
        "spec.volumes[0].containerDisk.imagePullPolicy",
    }
