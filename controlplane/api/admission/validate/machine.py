# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules of a machine's spec, in an instance or in a template."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.problem import Problem
from controlplane.api.admission.validate.compute import check_compute
from controlplane.api.admission.validate.devices import check_devices
from controlplane.api.admission.validate.network import check_network
from controlplane.api.admission.validate.placement import check_placement
from controlplane.api.admission.validate.probes import check_probes
from controlplane.api.admission.validate.storage import check_storage
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec


def check_machine(
    spec: VirtualMachineInstanceSpec, configuration: KubeVirtConfiguration, path: str
) -> Iterator[Problem]:
    """Check all rules over several fields of a machine's spec."""
    yield from check_compute(spec.domain, configuration, f"{path}.domain")
    yield from check_devices(spec.domain.devices, f"{path}.domain.devices")
    yield from check_storage(spec, path)
    yield from check_network(spec, path)
    yield from check_placement(spec, path)
    yield from check_probes(spec, path)
