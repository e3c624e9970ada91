# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher Pod asks of its node."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import DeveloperConfiguration
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.domain.builders.facts import Facts
from controlplane.virt_controller.vmi.resources import MIB, TCG_TRANSLATION_BUFFER, build_resources

KVM, TUN = "devices.kubevirt.io/kvm", "devices.kubevirt.io/tun"
GUEST = {"memory": {"guest": "512Mi"}}
NIC = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}

# guest 512 MiB: 64 fixed + 8 per vCPU + 1 page tables
TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "plain": (GUEST, {}, {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {KVM: "1"}}),
    "with a card": (
        {**GUEST, **NIC},
        {},
        {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {KVM: "1", TUN: "1"}},
    ),
    "emulated": (GUEST, {"useEmulation": True}, {"requests": {"cpu": "100m", "memory": str(713 * MIB)}}),
    "four processors, other ratio": (
        {**GUEST, "cpu": {"sockets": 2, "cores": 2}},
        {"cpuAllocationRatio": 4},
        {"requests": {"cpu": "1", "memory": str(609 * MIB)}, "limits": {KVM: "1"}},
    ),
    "user's own figures": (
        {**GUEST, "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}}},
        {},
        {
            "requests": {"cpu": "250m", "memory": str((256 + 73) * MIB)},
            "limits": {"cpu": "2", "memory": str((1024 + 73) * MIB), KVM: "1"},
        },
    ),
    "memory only as a request": (
        {"resources": {"requests": {"memory": "512Mi"}}},
        {},
        {"requests": {"cpu": "100m", "memory": str(585 * MIB)}, "limits": {KVM: "1"}},
    ),
}


@pytest.mark.parametrize(("domain", "developer", "expected"), TABLE.values(), ids=TABLE.keys())
def test_resources(domain: dict[str, Any], developer: dict[str, Any], expected: dict[str, Any]) -> None:
    found = build_resources(decode(domain, DomainSpec), decode(developer, DeveloperConfiguration))
    assert found == expected


def test_the_buffer_of_translated_code_is_counted_as_the_domain_sets_it() -> None:
    assert (
        next(field.default * MIB for field in Facts.__dataclass_fields__.values() if field.name == "tb_cache_mib")
        == TCG_TRANSLATION_BUFFER
    )
