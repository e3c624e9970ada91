# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces, on taps that virt-node made."""

from __future__ import annotations

from libvirt_domain.model.disk import Alias, Boot
from libvirt_domain.model.interface import Interface, InterfaceModel, Mac, Mtu, Rom, TapTarget

from controlplane.api.objects.vmi.devices import Interface as InterfaceSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts, NotBuildableError


def build_interfaces(vmi: VirtualMachineInstance, facts: Facts) -> tuple[Interface, ...]:
    """Return the interfaces in the order of the spec."""
    return tuple(_build(spec, facts, index) for index, spec in enumerate(vmi.spec.domain.devices.interfaces))


def _build(spec: InterfaceSpec, facts: Facts, index: int) -> Interface:
    link = facts.links.get(spec.name)
    if link is None:
        where = f"spec.domain.devices.interfaces[{index}]"
        raise NotBuildableError(where, f"the Pod has no tap for interface {spec.name!r}")
    is_virtio = spec.model in ("", "virtio")
    return Interface(
        type="ethernet",
        mac=Mac(address=link.mac),
        target=TapTarget(device=link.tap, managed=False),
        model=InterfaceModel(type="virtio-non-transitional" if is_virtio else spec.model),
        mtu=Mtu(size=link.mtu),
        rom=None if spec.boot_order else Rom(enabled=False),  # the boot ROM is only needed for network boot
        boot=Boot(order=spec.boot_order) if spec.boot_order else None,
        alias=Alias(name=f"ua-{spec.name}"),
    )
