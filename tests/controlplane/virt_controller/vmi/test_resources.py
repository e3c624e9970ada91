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
NIC = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}

# guest 512 MiB: 64 fixed + 8 per vCPU + 1 page tables
TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "plain": (
        GUEST,
        {},
        {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {"memory": str(841 * MIB), KVM: "1"}},
    ),
    "with a card": (
        {**GUEST, **NIC},
        {},
        {
            "requests": {"cpu": "100m", "memory": str(585 * MIB)},
            "limits": {"memory": str(841 * MIB), KVM: "1", TUN: "1"},
        },
    ),
    "emulated": (
        GUEST,
        {"useEmulation": True},
        {"requests": {"cpu": "100m", "memory": str(713 * MIB)}, "limits": {"memory": str(969 * MIB)}},
    ),
    "with two disks": (
        {**GUEST, "devices": {"disks": [{"name": "a", "disk": {}}, {"name": "b", "disk": {}}]}},
        {},
        {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {"memory": str(969 * MIB), KVM: "1"}},
    ),
    "four processors, other ratio": (
        {**GUEST, "cpu": {"sockets": 2, "cores": 2}},
        {"cpuAllocationRatio": 4},
        {"requests": {"cpu": "1", "memory": str(609 * MIB)}, "limits": {"memory": str(865 * MIB), KVM: "1"}},
    ),
    "user's own figures": (
        {**GUEST, "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}}},
        {},
        {
            "requests": {"cpu": "250m", "memory": str((256 + 73) * MIB)},
            "limits": {"cpu": "2", "memory": str((1024 + 73) * MIB), KVM: "1"},
        },
    ),
    "processors only as a limit: it is what is asked for, as Kubernetes has it": (
        {**GUEST, "resources": {"limits": {"cpu": "1500m"}}},
        {},
        {
            "requests": {"cpu": "1500m", "memory": str(585 * MIB)},
            "limits": {"cpu": "1500m", "memory": str(841 * MIB), KVM: "1"},
        },
    ),
    "memory only as a request": (
        {"resources": {"requests": {"memory": "512Mi"}}},
        {},
        {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {"memory": str(841 * MIB), KVM: "1"}},
    ),
}


def build(domain: DomainSpec, developer: DeveloperConfiguration, current_bytes: int = 0) -> dict[str, dict[str, str]]:
    return build_resources(domain, guest_memory(domain), developer, SPACE, current_bytes)


@pytest.mark.parametrize(("domain", "developer", "expected"), TABLE.values(), ids=TABLE.keys())
def test_the_resources_of_a_domain(domain: dict[str, Any], developer: dict[str, Any], expected: dict[str, Any]) -> None:
    resources = build(decode(domain, DomainSpec), decode(developer, DeveloperConfiguration))
    assert resources["requests"].pop("ephemeral-storage") == str(64 * MIB)
    assert resources["limits"].pop("ephemeral-storage") == "2000"
    assert resources == expected


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


def test_the_translation_buffer_is_included_as_the_domain_sets_it() -> None:
    assert (
        next(field.default * MIB for field in Facts.__dataclass_fields__.values() if field.name == "tb_cache_mib")
        == TCG_TRANSLATION_BUFFER
    )
