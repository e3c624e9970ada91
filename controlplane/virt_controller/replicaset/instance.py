# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and names of a replica set's VMIs. Pure.

The template's spec is copied as stored, including fields that this version does not know. A name has the prefix that
KubeVirt uses; its suffix is derived from the set, the batch and the place in it, so that no VMI is created twice.
"""

from __future__ import annotations

import hashlib
from typing import Any

from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.replica_set import BURST, VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.virt_controller.vm.template import plain_template

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated suffixes, as in Kubernetes: without vowels they form no words."""
SUFFIX_LENGTH = 8
"""In one of 6,000 sets of 10,000 members, two names are equal: the second member gets a name of the next batch."""
MAX_LENGTH = 63


def names_of_batch(replica_set: VirtualMachineInstanceReplicaSet) -> tuple[str, ...]:
    """Return the names of the current batch; none if it is complete."""
    status = replica_set.status
    places = range(min(status.batch_size, BURST))
    return tuple(_name(replica_set, f"{status.batches}/{place}") for place in places)


def _name(replica_set: VirtualMachineInstanceReplicaSet, place: str) -> str:
    meta, template = replica_set.metadata, replica_set.spec.template.metadata
    number = int.from_bytes(hashlib.sha256(f"{meta.uid}/{place}".encode()).digest())
    suffix = ""
    for _unused in range(SUFFIX_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        suffix += ALPHABET[digit]
    return (template.name or template.generate_name or meta.name)[: MAX_LENGTH - SUFFIX_LENGTH] + suffix


def build_vmi(replica_set: VirtualMachineInstanceReplicaSet, template: bytes, name: str) -> dict[str, Any]:
    """Build a VMI's manifest from the stored template (JSON), without defaults."""
    metadata = replica_set.spec.template.metadata
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE.kind,
        "metadata": {
            "name": name,
            "namespace": replica_set.metadata.namespace,
            "labels": dict(metadata.labels),
            "annotations": dict(metadata.annotations),
            "finalizers": [VMI_FINALIZER],
            "ownerReferences": [owner_reference(replica_set)],
        },
        "spec": plain_template(template),
    }
