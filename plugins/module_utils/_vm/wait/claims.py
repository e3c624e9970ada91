# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The claims of a VM's DataVolumes, which are deleted with the VM. Few tasks load this file (wait_for_claims)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._client.api import Api, Resource
from ..._client.errors import BadArgument, NotFound
from ..request.vm_request import VmRequest

Object = dict[str, Any]


def check(requests: Sequence[VmRequest], *, wait: bool) -> None:
    """Refuse wait_for_claims if the task does not wait, deletes nothing, or keeps the claims."""
    if not wait:
        raise BadArgument("wait_for_claims says what to wait for; set wait=true, or leave it out")
    deletions = [request for request in requests if request.state == "absent"]
    if requests and not deletions:
        raise BadArgument("wait_for_claims says what state=absent waits for; set that state, or leave it out")
    for request in deletions:
        if request.delete_options.get("propagationPolicy") == "Orphan":
            text = "propagationPolicy Orphan deletes nothing with a VM; leave one of them out"
            raise BadArgument(f"wait_for_claims: {request.title}: {text}")


def resource(namespace: str) -> Resource:
    """Return the kind PersistentVolumeClaim."""
    return Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespace)


def deleted_with(api: Api, vm: Object, namespace: str) -> list[Object]:
    """Return the claims that are deleted with the VM."""
    claims = []
    for template in (vm.get("spec") or {}).get("dataVolumeTemplates") or ():
        claim = api.get(resource(namespace), template["metadata"]["name"])
        if claim is not None and _is_deleted_with(api, claim, vm, namespace):
            claims.append(claim)
    return claims


def _is_deleted_with(api: Api, claim: Object, vm: Object, namespace: str) -> bool:
    """Tell whether the VM owns a claim: through its DataVolume, or directly if CDI has removed the DataVolume."""
    name, uid = claim["metadata"]["name"], vm["metadata"].get("uid")
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("uid") == uid:
            return True
        if (owner.get("kind"), owner.get("name")) == ("DataVolume", name):
            volume = _data_volume(api, name, namespace)
            return volume is None or _is_owned(volume, uid)  # a DataVolume that is gone was deleted with the VM
    return False


def _data_volume(api: Api, name: str, namespace: str) -> Object | None:
    try:
        return api.get(Resource("cdi.kubevirt.io/v1beta1", "datavolumes", "DataVolume", namespace), name)
    except NotFound:
        return None


def _is_owned(obj: Object, uid: str | None) -> bool:
    return any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences") or ())
