# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.guest_memory import GuestMemory, guest_memory
from controlplane.domain.builders.cpu import build_cpu, build_vcpu
from controlplane.domain.builders.facts import Facts, NotBuildableError
from controlplane.domain.builders.memory import build_memory
from tests.controlplane.domain.builders.vmis import KVM, TCG, a_vmi


@pytest.mark.parametrize(
    ("facts", "model", "expected"),
    [
        pytest.param(KVM, "", ("host-model", None, None), id="kvm, no wish"),
        pytest.param(KVM, "host-model", ("host-model", None, None), id="kvm, host-model"),
        pytest.param(KVM, "host-passthrough", ("host-passthrough", None, None), id="kvm, host-passthrough"),
        pytest.param(KVM, "Westmere", ("custom", "Westmere", None), id="kvm, named: libvirt checks"),
        pytest.param(TCG, "", ("maximum", None, None), id="emulation, no wish"),
        pytest.param(TCG, "host-passthrough", ("maximum", None, None), id="emulation has no host to show"),
        pytest.param(TCG, "Westmere", ("custom", "Westmere", "none"), id="emulation, named: as near as can be"),
    ],
)
def test_the_cpu_follows_the_spec_and_the_node(
    facts: Facts, model: str, expected: tuple[str, str | None, str | None]
) -> None:
    vmi = a_vmi(cpu={"model": model})
    cpu = build_cpu(vmi, facts, guest_memory(vmi.spec.domain))
    assert (cpu.mode, cpu.model, cpu.check) == expected


def test_unset_fields_of_the_topology_count_as_one() -> None:
    vmi = a_vmi(cpu={"sockets": 3})
    topology = build_cpu(vmi, KVM, guest_memory(vmi.spec.domain)).topology
    assert (topology.sockets, topology.cores, topology.threads, build_vcpu(vmi).most) == (3, 1, 1, 3)


@pytest.mark.parametrize(
    ("cpu", "current", "most", "sockets"),
    [
        ({"sockets": 1, "cores": 2, "maxSockets": 4}, 2, 8, 4),
        ({"sockets": 4, "cores": 2, "maxSockets": 4}, None, 8, 4),
        ({"sockets": 4, "maxSockets": 2}, None, 4, 4),
    ],
    ids=["room for more", "all from the start", "no room at all"],
)
def test_the_domain_has_room_for_max_sockets(cpu: dict[str, Any], current: int | None, most: int, sockets: int) -> None:
    vmi = a_vmi(cpu=cpu)
    vcpu = build_vcpu(vmi)
    assert (vcpu.current, vcpu.most, build_cpu(vmi, KVM, guest_memory(vmi.spec.domain)).topology.sockets) == (
        current,
        most,
        sockets,
    )


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        pytest.param({"memory": {"guest": "1.5Gi"}}, 1610612736, id="memory.guest"),
        pytest.param({"memory": {}, "resources": {"requests": {"memory": "64M"}}}, 64000000, id="request"),
        pytest.param({"memory": {}, "resources": {"limits": {"memory": "64Mi"}}}, 67108864, id="limit"),
    ],
)
def test_guest_memory_is_the_first_size_given(domain: dict[str, Any], expected: int) -> None:
    assert build_memory(guest_memory(a_vmi(**domain).spec.domain)).size == expected


def test_a_machine_without_memory_is_not_built() -> None:
    with pytest.raises(NotBuildableError, match=r"spec\.domain\.memory\.guest: .* is needed"):
        build_memory(GuestMemory(guest=0, most=0))
