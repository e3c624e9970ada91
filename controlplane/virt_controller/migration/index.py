# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Index of migrations by their VMI. Pure."""

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


class _Migration(Struct, frozen=True, kw_only=True):
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_Migration)


def vmi_name_of(raw: bytes) -> str:
    """Return the name of the VMI that a migration moves."""
    return _decoder.decode(raw).spec.vmi_name


def migrations_of(migrations: Cache, vmi: Key, created: Key | None) -> list[VirtualMachineInstanceMigration]:
    """List the migrations of a VMI. created: the last one by this process; the index may not have it yet."""
    keys = {*migrations.indexed(BY_VMI, str(vmi)), *([] if created is None else [created])}
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
