# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachineInstanceMigration. Whether its instance can migrate is asked by virt-api."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Rules
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationSpec


def _check(spec: VirtualMachineInstanceMigrationSpec, _unused: KubeVirtConfiguration) -> Iterator[Problem]:
    if not spec.vmi_name:
        yield Problem("spec.vmiName", "is missing; name the VirtualMachineInstance that is to move")


RULES = Rules(spec=_check)
