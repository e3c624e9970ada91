# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a VM's VMI: pure.

It has the VM's name: the API server refuses a second VMI while the first exists. The template's spec is copied as
stored, including fields that this version does not know; the VM's own labels and annotations are not copied.
"""

from __future__ import annotations

import uuid
from typing import Any

from kubevirt_api.names import (
    FIXED_TEMPLATE_HASH,
    TEMPLATE_HASH,
    TEMPLATE_METADATA_HASH,
    VM_GENERATION,
    VMI_FINALIZER,
)
from kubevirt_api.run_strategies import ALWAYS

from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.api.objects.vm import VirtualMachine
from controlplane.virt_controller.vm.template import fixed_hash, plain_template, template_hash
from controlplane.virt_controller.vm.template_metadata import metadata_hash

FIRMWARE_NAMESPACE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")
"""Namespace of the UUIDv5 for a machine without a firmware UUID. It is derived from the VM's name, so starts keep
it.
"""
_START_PAUSED: dict[bool, dict[str, Any]] = {False: {}, True: {"startStrategy": "Paused"}}


def build_vmi(vm: VirtualMachine, template: bytes, *, is_paused: bool = False) -> dict[str, Any]:
    """Build the VMI's manifest from the stored template (JSON). Defaults are not filled in.

    is_paused: the guest starts paused, even if the template does not ask for it.
    """
    spec = plain_template(template)
    domain = spec.get("domain") or {}
    firmware = domain.get("firmware") or {}
    stable = str(uuid.uuid5(FIRMWARE_NAMESPACE, vm.metadata.name))
    metadata = vm.spec.template.metadata
    origin = {
        VM_GENERATION: str(vm.metadata.generation),
        TEMPLATE_HASH: template_hash(template),
        FIXED_TEMPLATE_HASH: fixed_hash(template),
        TEMPLATE_METADATA_HASH: metadata_hash(metadata),
    }
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE.kind,
        "metadata": {
            "name": vm.metadata.name,
            "namespace": vm.metadata.namespace,
            "labels": dict(metadata.labels),
            "annotations": {**metadata.annotations, **origin},
            "finalizers": [VMI_FINALIZER],
            "ownerReferences": [owner_reference(vm)],
        },
        "spec": {
            **spec,
            **_START_PAUSED[is_paused],
            "domain": {**domain, "firmware": {**firmware, "uuid": firmware.get("uuid") or stable}},
        },
    }


def run_always_patch(vm: VirtualMachine) -> dict[str, Any]:
    """Return the spec patch that starts a halted VM, in the field that it uses."""
    if vm.spec.run_strategy is None and vm.spec.running is not None:
        return {"running": True}
    return {"runStrategy": ALWAYS}
