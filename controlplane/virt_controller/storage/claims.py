# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PersistentVolumeClaims: the reader that controllers use, and the index of VMs, VMIs and launcher Pods by claim.

A claim that is not in the cache yet counts as missing. When it is added, it enqueues the objects that name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from controlplane.api.objects.claim import Claims, PersistentVolumeClaim, claim_names
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.engine.ports import Cache
from controlplane.kube.cache import PartialObject

BY_CLAIM = "claim"
"""Index of VMs, VMIs and Pods by the claims that their volumes name. The claim of a DataVolume has its name."""
DATA_VOLUMES = "DataVolumes"
"""Value in BY_CLAIM of every object that names any DataVolume. No claim has this value: a claim's is namespace/name."""

ReadClaims = Callable[[str, Iterable[Volume]], Claims]
"""Given a namespace and volumes: the existing claims that these name."""


def claim_reader(cache: Cache) -> ReadClaims:
    """Return a function that reads claims from a cache. Deleting and malformed claims count as missing."""

    def read(namespace: str, volumes: Iterable[Volume]) -> Claims:
        names = claim_names(volumes)
        return dict(_read(cache, namespace, names)) if names else NO_CLAIMS

    return read


def no_claims(_namespace: str, _volumes: Iterable[Volume]) -> Claims:
    """Read no claims: the default of reconcilers that run without storage."""
    return NO_CLAIMS


def _read(cache: Cache, namespace: str, names: Iterable[str]) -> Iterator[tuple[str, PersistentVolumeClaim]]:
    for name in names:
        raw = cache.get(Key(namespace, name))
        if raw is not None:
            try:
                claim = decode(raw, PersistentVolumeClaim)
            except DecodeError:
                continue
            # A new Pod would wait for a deleting claim, and keep it from being deleted.
            if claim.metadata.deletion_timestamp is None:
                yield name, claim


class _Source(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""
    name: str = ""


class _Volume(msgspec.Struct, rename="camel", gc=False):
    persistent_volume_claim: _Source | None = None
    data_volume: _Source | None = None


class _Spec(msgspec.Struct):
    volumes: list[_Volume] | None = None


class _Template(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _VmSpec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Vm(msgspec.Struct):
    spec: _VmSpec = msgspec.field(default_factory=_VmSpec)


class _Vmi(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_VM_DECODER = msgspec.json.Decoder(_Vm)
_VMI_DECODER = msgspec.json.Decoder(_Vmi)
_VOLUME_FIELDS = (b'"persistentVolumeClaim"', b'"dataVolume"')
_TEMPLATE_FIELD = b'"dataVolumeTemplates"'


def claims_of_vm(partial: PartialObject) -> Iterable[str]:
    """Return the values of a VM in BY_CLAIM: namespace/name of each claim in its template, and DATA_VOLUMES."""
    has_claims = _names_claims(partial)
    values = _values(partial, _VM_DECODER.decode(partial.raw).spec.template.spec.volumes) if has_claims else []
    return [*values, DATA_VOLUMES] if _TEMPLATE_FIELD in partial.raw else values


def claims_of_vmi(partial: PartialObject) -> Iterable[str]:
    """Return the values of a VMI in BY_CLAIM: namespace/name of each of its claims, and DATA_VOLUMES."""
    return _values(partial, _VMI_DECODER.decode(partial.raw).spec.volumes) if _names_claims(partial) else ()


def claims_of_pod(partial: PartialObject) -> Iterable[str]:
    """Return the values of a Pod in BY_CLAIM: namespace/name of each of its claims."""
    return claims_of_vmi(partial)  # their volumes name claims alike


def _names_claims(partial: PartialObject) -> bool:
    """Test cheaply whether an object may name claims: then most objects need no decoding."""
    return any(field in partial.raw for field in _VOLUME_FIELDS)


def _values(partial: PartialObject, volumes: Iterable[_Volume] | None) -> list[str]:
    volumes = list(volumes or ())
    data_volumes = [volume.data_volume.name for volume in volumes if volume.data_volume is not None]
    claims = [
        volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim is not None
    ]
    values = [f"{partial.metadata.namespace}/{name}" for name in (*claims, *data_volumes)]
    return [*values, DATA_VOLUMES] if data_volumes else values
