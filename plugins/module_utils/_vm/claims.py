# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which claims go with a VM: those of the DataVolumes that were made for it. Apart, for tasks seldom ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import BadArgument, NotFound
from .request import VmRequest

Object = dict[str, Any]


def check(requests: Iterable[VmRequest], *, wait: bool) -> None:
    """Refuse to wait for them where nothing is waited for, or nothing goes."""
    if not wait:
        raise BadArgument("wait_for_claims says what to wait for; set wait=true, or leave it out")
    asked = list(requests)
    leaving = [one for one in asked if one.state == "absent"]
    if asked and not leaving:
        raise BadArgument("wait_for_claims says what state=absent waits for; set that state, or leave it out")
    for one in leaving:
        if one.delete_options.get("propagationPolicy") == "Orphan":
            text = "with propagationPolicy Orphan nothing goes with a VM; leave one of them out"
            raise BadArgument(f"wait_for_claims: {one.title}: {text}")


def resource(namespace: str) -> Resource:
    """Return the kind PersistentVolumeClaim."""
    return Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespace)


def going_with(api: Api, vm: Object, namespace: str) -> list[Object]:
    """Return the claims that are deleted because the VM is."""
    found = []
    for template in (vm.get("spec") or {}).get("dataVolumeTemplates") or ():
        claim = api.get(resource(namespace), template["metadata"]["name"])
        if claim is not None and _goes(api, claim, vm, namespace):
            found.append(claim)
    return found


def _goes(api: Api, claim: Object, vm: Object, namespace: str) -> bool:
    """Tell whether the VM owns a claim, by its DataVolume, or by itself where CDI has taken that away."""
    name, uid = claim["metadata"]["name"], vm["metadata"].get("uid")
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("uid") == uid:
            return True
        if (owner.get("kind"), owner.get("name")) == ("DataVolume", name):
            volume = _volume(api, name, namespace)
            return volume is None or _is_owned(volume, uid)  # one that is gone went with the VM
    return False


def _volume(api: Api, name: str, namespace: str) -> Object | None:
    try:
        return api.get(Resource("cdi.kubevirt.io/v1beta1", "datavolumes", "DataVolume", namespace), name)
    except NotFound:
        return None


def _is_owned(obj: Object, uid: str | None) -> bool:
    return any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences") or ())
