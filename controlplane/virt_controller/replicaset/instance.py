# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances of a replica set, and their names: pure.

The template's spec is copied as it was stored, with fields that this version does not know. A name begins as upstream's
do; its end follows from the set, the batch and the place in it, so that nobody makes the same instance twice.
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
"""Of the ends of names, as Kubernetes makes them: no vowels, so no words."""
END = 8
"""Characters. Two of 10,000 have the same in one of 6,000 sets; the second is then made in the next batch."""
LONGEST = 63


def names_of_batch(replica_set: VirtualMachineInstanceReplicaSet) -> tuple[str, ...]:
    """Return the names of the batch that was begun and is not known to be complete."""
    status = replica_set.status
    places = range(min(status.batch_size, BURST))
    return tuple(_name(replica_set, f"{status.batches}/{place}") for place in places)


def _name(replica_set: VirtualMachineInstanceReplicaSet, which: str) -> str:
    meta, given = replica_set.metadata, replica_set.spec.template.metadata
    number = int.from_bytes(hashlib.sha256(f"{meta.uid}/{which}".encode()).digest())
    end = ""
    for _unused in range(END):
        number, place = divmod(number, len(ALPHABET))
        end += ALPHABET[place]
    return (given.name or given.generate_name or meta.name)[: LONGEST - END] + end


def build_vmi(replica_set: VirtualMachineInstanceReplicaSet, template: bytes, name: str) -> dict[str, Any]:
    """Build an instance's manifest from the template as stored (JSON); defaults are still to be filled in."""
    given = replica_set.spec.template.metadata
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE.kind,
        "metadata": {
            "name": name,
            "namespace": replica_set.metadata.namespace,
            "labels": dict(given.labels),
            "annotations": dict(given.annotations),
            "finalizers": [VMI_FINALIZER],
            "ownerReferences": [owner_reference(replica_set)],
        },
        "spec": plain_template(template),
    }
