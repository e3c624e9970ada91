# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The corpus for each kind that contains a machine: the same fault in the template of that kind."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Resource
from tests.controlplane.api import golden
from tests.controlplane.api.corpus import Row

SET = VirtualMachineInstanceReplicaSet.resource
KINDS = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, SET)

TEMPLATE = "spec/template/"
_EVERYWHERE = ("metadata/", "sepc")
_OWN_METADATA = "spec/template/metadata/lables"
"""A field of an object's own metadata: the API server's to judge, which drops it unless it is asked to be strict."""
_OF_A_VM = ("spec/running", "spec/runStrategy", "spec/dataVolumeTemplates", "spec/instancetype")


def fits(row: Row, resource: Resource) -> bool:
    """Whether a kind has the path of the fault."""
    if resource == VIRTUAL_MACHINE_INSTANCE and row.set == _OWN_METADATA:
        return False
    if resource == VIRTUAL_MACHINE or row.set.startswith((TEMPLATE, *_EVERYWHERE)):
        return True
    return resource == SET and not row.set.startswith(_OF_A_VM)


def machine(resource: Resource) -> dict[str, Any]:
    """Return a good object of a kind whose machine has every field."""
    vm = golden.load("vm-full")
    template, about = vm["spec"]["template"], {"apiVersion": "kubevirt.io/v1", "kind": resource.kind}
    if resource == VIRTUAL_MACHINE_INSTANCE:
        return about | {"metadata": vm["metadata"] | template["metadata"], "spec": template["spec"]}
    if resource == SET:
        labels = template["metadata"]["labels"]
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return about | {"metadata": vm["metadata"], "spec": spec}
    return vm


def relocated(row: Row, resource: Resource) -> dict[str, Any]:
    """Return an object of a kind with the fault of a row."""
    place = row.set.removeprefix(TEMPLATE) if resource == VIRTUAL_MACHINE_INSTANCE else row.set
    return golden.changed(machine(resource), place, row.value)


def field(row: Row, resource: Resource) -> str:
    """Return the end of the path that an error must name."""
    return row.field.removeprefix("spec.template.") if resource == VIRTUAL_MACHINE_INSTANCE else row.field
