# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ControllerRevision of a VM's start: the VM's spec as it was then. Pure.

It is a record for clients, which compare it with the current spec or restore a machine from it. Nothing here is decided
by it: hashes in the VMI's annotations show what was changed.
"""

from __future__ import annotations

from typing import Any

from kubevirt_api.names import VM_GENERATION

from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.owner import controller_of, owner_reference
from controlplane.api.objects.resources import CONTROLLER_REVISION, VIRTUAL_MACHINE
from controlplane.api.objects.vm import VirtualMachine

Json = dict[str, Any]


def revision_name(vm_uid: str, generation: int | str) -> str:
    """Return the name, as in KubeVirt: two starts of one generation have one revision."""
    return f"revision-start-vm-{vm_uid}-{generation}"


def revision_of_run(vmi: ObjectMeta) -> str:
    """Return the name of a new VMI's revision; "" if no VM created it."""
    owner, generation = controller_of(vmi), vmi.annotations.get(VM_GENERATION, "")
    if owner is None or owner.kind != VIRTUAL_MACHINE.kind or not (generation.isascii() and generation.isdecimal()):
        return ""
    return revision_name(owner.uid, generation)


def build_revision(vm: VirtualMachine, spec: Json) -> Json:
    """Build the manifest. spec: the VM's, as stored."""
    return {
        "apiVersion": CONTROLLER_REVISION.api_version,
        "kind": CONTROLLER_REVISION.kind,
        "metadata": {
            "name": revision_name(vm.metadata.uid, vm.metadata.generation),
            "namespace": vm.metadata.namespace,
            "ownerReferences": [owner_reference(vm)],
        },
        "data": {"spec": spec},
        "revision": vm.metadata.generation,
    }
