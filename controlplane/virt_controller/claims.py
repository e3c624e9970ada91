# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PersistentVolumeClaims as controllers read them: out of a cache, and never written.

A claim that the cache does not have yet is waited for like one that does not exist: its coming wakes who needs it.
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
from controlplane.kube.cache import Peek

BY_CLAIM = "claim"
"""Index of VMs and VMIs by the claims that their volumes name; the claim of a DataVolume has its name."""
DATA_VOLUMES = "DataVolumes"
"""What is filed there beside: whatever names DataVolumes. No claim is called that."""

ReadClaims = Callable[[str, Iterable[Volume]], Claims]
"""Given a namespace and volumes: the claims that these name, as far as they are known to exist."""


def reader_of(cache: Cache) -> ReadClaims:
    """Return what reads the claims of a cache."""

    def read(namespace: str, volumes: Iterable[Volume]) -> Claims:
        named = claim_names(volumes)
        return dict(_known(cache, namespace, named)) if named else NO_CLAIMS

    return read


def no_claims(_namespace: str, _volumes: Iterable[Volume]) -> Claims:
    """Know of no claim."""
    return NO_CLAIMS


def _known(cache: Cache, namespace: str, named: Iterable[str]) -> Iterator[tuple[str, PersistentVolumeClaim]]:
    for name in named:
        raw = cache.get(Key(namespace, name))
        if raw is not None:
            try:
                claim = decode(raw, PersistentVolumeClaim)
            except DecodeError:
                continue
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
_WORDS = (b'"persistentVolumeClaim"', b'"dataVolume"')
_TEMPLATES = b'"dataVolumeTemplates"'


def by_claim_of_vm(seen: Peek) -> Iterable[str]:
    """File a VM under namespace/name of each claim in its template, and with those that name DataVolumes."""
    filed = _filed(seen, _VM_DECODER.decode(seen.raw).spec.template.spec.volumes) if _names_claims(seen) else []
    return [*filed, DATA_VOLUMES] if _TEMPLATES in seen.raw else filed


def by_claim_of_vmi(seen: Peek) -> Iterable[str]:
    """File an instance under namespace/name of each of its claims, and with those that name DataVolumes."""
    return _filed(seen, _VMI_DECODER.decode(seen.raw).spec.volumes) if _names_claims(seen) else ()


def _names_claims(seen: Peek) -> bool:
    return any(word in seen.raw for word in _WORDS)


def _filed(seen: Peek, volumes: Iterable[_Volume] | None) -> list[str]:
    named = [one.data_volume.name for one in volumes or () if one.data_volume is not None]
    claimed = [
        one.persistent_volume_claim.claim_name for one in volumes or () if one.persistent_volume_claim is not None
    ]
    places = [f"{seen.metadata.namespace}/{name}" for name in (*claimed, *named)]
    return [*places, DATA_VOLUMES] if named else places
