# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small, adaptable VMI for the tests of the builders."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts

KVM = Facts(pod_uid="pod", epoch=1, is_kvm=True)
TCG = Facts(pod_uid="pod", epoch=1, is_kvm=False)


def a_vmi(*, volumes: list[Any] | None = None, **domain: Any) -> VirtualMachineInstance:
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}, **domain}, "volumes": volumes or []}
    return decode_vmi({"metadata": {"namespace": "ns", "name": "vm", "uid": "uid-1"}, "spec": spec})
