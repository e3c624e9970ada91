# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode JSON into types leniently: unknown fields are skipped, nulls count as absent.

controlplane.api.admission.fields is strict. A controller must still read an object that admission never saw.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from controlplane.api.decoders import decoder
from controlplane.api.objects.kubevirt import KubeVirt
from controlplane.api.objects.meta import Node, Object
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

T = TypeVar("T", bound=msgspec.Struct)
Source = bytes | dict[str, Any]


class DecodeError(ValueError):
    """An object does not fit its type; the text names the field."""


def decode_vm(source: Source) -> VirtualMachine:
    """Decode a VirtualMachine from JSON bytes or plain values."""
    return decode(source, VirtualMachine)


def decode_vmi(source: Source) -> VirtualMachineInstance:
    """Decode a VirtualMachineInstance from JSON bytes or plain values."""
    return decode(source, VirtualMachineInstance)


def readable_vmi(raw: bytes | None) -> VirtualMachineInstance | None:
    """Return the VMI of a cache's bytes; None if there is none, or it cannot be read."""
    try:
        return None if raw is None else decode_vmi(raw)
    except DecodeError:
        return None


def decode_kubevirt(source: Source) -> KubeVirt:
    """Decode a KubeVirt from JSON bytes or plain values."""
    return decode(source, KubeVirt)


def decode(source: Source, kind: type[T]) -> T:
    """Decode an object. DecodeError names the field that does not fit."""
    reader = decoder(kind)
    try:
        try:
            return reader.decode(source) if isinstance(source, bytes) else msgspec.convert(source, kind)
        except msgspec.ValidationError:
            return _without_nulls(msgspec.json.decode(source) if isinstance(source, bytes) else source, kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(f"{kind.__name__} is not JSON: {error}") from error
    except RecursionError as error:
        raise DecodeError(f"{kind.__name__} does not fit, and is nested too deeply to say where") from error


def encode(node: Node) -> dict[str, Any]:
    """Encode a typed object as plain JSON values, without fields at their default. Objects get apiVersion and kind."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(node))
    if isinstance(node, Object):
        return {"apiVersion": node.resource.api_version, "kind": node.resource.kind, **plain}
    return plain


def _without_nulls(plain: dict[str, Any], kind: type[T]) -> T:
    """Decode again without nulls: Go clients write null for an absent field."""
    try:
        return msgspec.convert(drop_nulls(plain), kind)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise DecodeError(f"{kind.__name__} does not fit: {error}") from error


def drop_nulls(value: Any) -> Any:
    """Return plain JSON values without null members."""
    if isinstance(value, dict):
        return {key: drop_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [drop_nulls(member) for member in value]
    return value
