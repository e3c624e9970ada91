# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources that a launcher Pod requests."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.guest_memory import guest_memory
from controlplane.api.objects.kubevirt import DeveloperConfiguration
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.domain.builders.facts import Facts
from controlplane.virt_controller.vmi.disk_space import DiskSpace
from controlplane.virt_controller.vmi.resources import MIB, TCG_TRANSLATION_BUFFER, build_resources

KVM, TUN = "devices.kubevirt.io/kvm", "devices.kubevirt.io/tun"
SPACE = DiskSpace(run=1000, pod=2000)
GUEST = {"memory": {"guest": "512Mi"}}

CARD = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}
DISKS = {"devices": {"disks": [{"name": "a", "disk": {}}, {"name": "b", "disk": {}}]}}
OWN = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}}
EMULATED, FOUR = {"useEmulation": True}, {"cpu": {"sockets": 2, "cores": 2}}


def build(domain: DomainSpec, developer: DeveloperConfiguration, current_bytes: int = 0) -> dict[str, dict[str, str]]:
    return build_resources(domain, guest_memory(domain), developer, SPACE, current_bytes)


def resources(cpu: str, memory: int, limit: int, *, cpu_limit: str = "", devices: tuple[str, ...] = (KVM,)) -> Any:
    limits = {"memory": str(limit * MIB), **({"cpu": cpu_limit} if cpu_limit else {}), **dict.fromkeys(devices, "1")}
    return {"requests": {"cpu": cpu, "memory": str(memory * MIB)}, "limits": limits}


# guest 512 MiB: 64 fixed + 8 per vCPU + 1 page tables
TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "plain": (GUEST, {}, resources("100m", 585, 841)),
    "with a card": ({**GUEST, **CARD}, {}, resources("100m", 585, 841, devices=(KVM, TUN))),
    "emulated": (GUEST, EMULATED, resources("100m", 713, 969, devices=())),
    "with two disks": ({**GUEST, **DISKS}, {}, resources("100m", 585, 969)),
    "four CPUs, another ratio": ({**GUEST, **FOUR}, {"cpuAllocationRatio": 4}, resources("1", 609, 865)),
    "own figures": ({**GUEST, "resources": OWN}, {}, resources("250m", 256 + 73, 1024 + 73, cpu_limit="2")),
    "only a CPU limit, which is the request, as in Kubernetes": (
        {**GUEST, "resources": {"limits": {"cpu": "1500m"}}},
        {},
        resources("1500m", 585, 841, cpu_limit="1500m"),
    ),
    "only a memory request": ({"resources": {"requests": {"memory": "512Mi"}}}, {}, resources("100m", 585, 841)),
}


@pytest.mark.parametrize(("domain", "developer", "expected"), TABLE.values(), ids=TABLE.keys())
def test_the_resources_of_a_domain(domain: dict[str, Any], developer: dict[str, Any], expected: dict[str, Any]) -> None:
    built = build(decode(domain, DomainSpec), decode(developer, DeveloperConfiguration))
    assert built["requests"].pop("ephemeral-storage") == str(64 * MIB)
    assert built["limits"].pop("ephemeral-storage") == "2000"
    assert built == expected


def test_a_machine_without_memory_limits_cannot_use_up_the_nodes_memory() -> None:
    """The limit is the guest's memory, the measured overhead, and a margin above the overhead."""
    for amount in ("64Mi", "512Mi", "1Ti"):
        for developer in ({}, {"useEmulation": True}):
            settings = decode(developer, DeveloperConfiguration)
            resources = build(decode({"memory": {"guest": amount}}, DomainSpec), settings)
            assert int(resources["limits"]["memory"]) == int(resources["requests"]["memory"]) + 256 * MIB


def test_a_guest_with_a_smaller_request_than_its_memory_can_use_all_of_it() -> None:
    domain = {"memory": {"guest": "4Gi"}, "resources": {"requests": {"memory": "1Gi"}}}
    resources = build(decode(domain, DomainSpec), DeveloperConfiguration())
    assert int(resources["limits"]["memory"]) > 4096 * MIB + 256 * MIB


@pytest.mark.parametrize("limit", [None, "1Gi"])
def test_a_guest_that_has_yet_to_return_memory_can_use_it(limit: str | None) -> None:
    """It arrives with the larger amount and returns it in this Pod: the request is for the smaller amount."""
    limits = {"limits": {"memory": limit}} if limit else {}
    domain = decode({"memory": {"guest": "1Gi", "maxGuest": "4Gi"}, "resources": limits}, DomainSpec)
    usual = build(domain, DeveloperConfiguration())
    resources = build(domain, DeveloperConfiguration(), 3 << 30)
    assert resources["requests"] == usual["requests"]
    assert int(resources["limits"]["memory"]) > (3 << 30) + 256 * MIB


def test_the_overhead_of_the_maximum_memory_is_included() -> None:
    """QEMU took 520 MiB more for a maximum of 4 TiB during a migration."""
    least, most = (
        build(decode({"memory": {"guest": "1Gi", **room}}, DomainSpec), DeveloperConfiguration())
        for room in ({}, {"maxGuest": "4Ti"})
    )
    for kind in ("requests", "limits"):
        assert int(most[kind]["memory"]) - int(least[kind]["memory"]) > 600 * MIB


def test_an_overcommitted_overhead_is_not_requested_and_still_may_be_used() -> None:
    usual, overcommitted = (
        build(
            decode({"memory": {"guest": "1Gi"}, "resources": {"overcommitGuestOverhead": value}}, DomainSpec),
            DeveloperConfiguration(),
        )
        for value in (False, True)
    )
    assert overcommitted["requests"] == {**usual["requests"], "memory": str(1024 * MIB)}
    assert overcommitted["limits"] == usual["limits"]


def test_the_translation_buffer_is_included_as_the_domain_sets_it() -> None:
    assert (
        next(field.default * MIB for field in Facts.__dataclass_fields__.values() if field.name == "tb_cache_mib")
        == TCG_TRANSLATION_BUFFER
    )
