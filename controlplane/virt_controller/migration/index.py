# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Index of migration caches by the VMI that is moved. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.kube.cache import PartialObject

BY_VMI = "vmi"
"""Name of the index; its keys are namespace/name of a VMI."""


class _Spec(Struct, frozen=True, kw_only=True):
    vmi_name: str = ""


class _Named(Struct, frozen=True, kw_only=True):
    spec: _Spec = _Spec()


_named_decoder = msgspec.json.Decoder(_Named)


def vmi_name_of(raw: bytes) -> str:
    """Return the name of the VMI that a migration moves."""
    return _named_decoder.decode(raw).spec.vmi_name


def migrations_of(migrations: Cache, vmi: Key, made: Key | None) -> list[VirtualMachineInstanceMigration]:
    """List the migrations of a VMI. made: the last one that this process created; the index may not have it yet."""
    keys = {*migrations.indexed(BY_VMI, str(vmi)), *([] if made is None else [made])}
    decoded = []
    for raw in map(migrations.get, sorted(keys)):
        try:
            migration = None if raw is None else decode(raw, VirtualMachineInstanceMigration)
        except DecodeError:
            continue
        if migration is not None and migration.spec.vmi_name == vmi.name:
            decoded.append(migration)
    return decoded


def index_by_vmi(partial: PartialObject) -> Iterable[str]:
    """Index a migration by its VMI."""
    return (f"{partial.metadata.namespace}/{vmi_name_of(partial.raw)}",)
