# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of MigrationPolicy."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.kinds.kubevirt import check_bandwidth
from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.metadata import check_labels
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration_policy import MigrationPolicySpec


def _check(spec: MigrationPolicySpec, _unused: KubeVirtConfiguration) -> Iterator[Problem]:
    selectors = spec.selectors
    yield from check_labels(selectors.namespace_selector, "spec.selectors.namespaceSelector")
    yield from check_labels(
        selectors.virtual_machine_instance_selector, "spec.selectors.virtualMachineInstanceSelector"
    )
    if spec.bandwidth_per_migration is not None:
        yield from check_bandwidth(spec.bandwidth_per_migration, "spec.bandwidthPerMigration")


def _leave(policy: Json, _configuration: KubeVirtConfiguration, _seed: str | None) -> Json:
    """Set no default. With it the mutating webhook checks policies, and reports all problems at once."""
    return policy


RULES = Rules(spec=_check, default=_leave)
