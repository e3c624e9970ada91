# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachineInstanceMigration. virt-api checks whether its instance can migrate."""

from __future__ import annotations

from collections.abc import Iterator

from kubevirt_api import names

from controlplane.api.admission.defaults import default_migration
from controlplane.api.admission.problem import Problem, excerpt, key
from controlplane.api.admission.rules import Rules
from controlplane.api.admission.validate.metadata import check_labels
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationSpec
from controlplane.api.schema.bounds import SUBDOMAIN
from controlplane.api.schema.patterns import matches


def _check(spec: VirtualMachineInstanceMigrationSpec, _unused: KubeVirtConfiguration) -> Iterator[Problem]:
    if not spec.vmi_name:
        text = "vmiName is missing; name the VirtualMachineInstance that is to move"
        yield Problem("spec.vmiName", text, "FieldValueRequired")
    elif not matches(SUBDOMAIN, spec.vmi_name):
        yield Problem("spec.vmiName", f"{excerpt(spec.vmi_name)} is no name of a VirtualMachineInstance")
    if spec.priority is not None:
        # A user's migration must not overtake node drains. virt-controller's own writes are not checked.
        text = "only virt-controller is allowed to set priority field; remove it"
        yield Problem("spec.priority", text, "FieldValueForbidden")
    yield from check_labels(spec.added_node_selector, "spec.addedNodeSelector")


def _check_metadata(meta: ObjectMeta, before: ObjectMeta) -> Iterator[Problem]:
    """Refuse a change of the label by which controllers find an instance's migrations. Defaults restore it."""
    new, old = meta.labels.get(names.VMI_NAME), before.labels.get(names.VMI_NAME)
    if old is not None and new not in (None, old):
        text = "is what the migrations of an instance are found by; leave it as it was"
        yield Problem(key("metadata.labels", names.VMI_NAME), text, "FieldValueForbidden")


RULES = Rules(
    spec=_check,
    metadata=_check_metadata,
    unchangeable="does not change after creation; delete this migration, which cancels it, and create another",
    default=default_migration,
    finalizer=names.MIGRATION_FINALIZER,
)
