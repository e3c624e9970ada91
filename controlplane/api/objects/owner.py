# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owner references: read the controller of an object, and build the reference to a controller."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.meta import Object, ObjectMeta, OwnerReference


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference with `controller: true`, if there is one."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def owner_reference(owner: Object) -> dict[str, Any]:
    """Build the reference that makes the owner an object's controller."""
    return {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
