# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a kind's admission rules: one function per part, with a default that does nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.admission.problem import Problem
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.schema.openapi import Schema

Json = dict[str, Any]


def _nothing(*_unused: Any) -> Iterator[Any]:
    return iter(())


def _as_it_is(spec: Any) -> Any:
    return spec


def _leave(_unused: Schema) -> None:
    """Leave a schema unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one kind. Rules of single fields are in the annotations of its types."""

    spec: Callable[[Any, KubeVirtConfiguration], Iterator[Problem]] = _nothing
    """Problems of a decoded spec: rules over several fields. Paths begin with "spec"."""
    fill: Callable[[Any], Any] = _as_it_is
    """Return a plain, possibly malformed spec with the defaults that `spec` looks at."""
    plain_spec: Callable[[Any], Iterator[Problem]] = _nothing
    """Problems of a spec as plain, possibly malformed values: rules that apply even when it cannot be decoded."""
    whole: Callable[[Json], Iterator[Problem]] = _nothing
    """Problems that involve metadata and spec. The object may be malformed."""
    data_volumes: Callable[[Json], Iterator[str]] = _nothing
    """Paths of fields that need DataVolumes, which not every cluster serves. The object may be malformed."""
    metadata: Callable[[ObjectMeta, ObjectMeta], Iterator[Problem]] = _nothing
    """Problems of the new metadata, given the old. Names are checked for every kind."""
    unchangeable: str = ""
    """The message for any change of the spec; "" if it may change."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Immutable fields of the spec, with the message for a change."""
    warn: Callable[[Json], Iterator[str]] = _nothing
    """Warnings for an object that may be accepted."""
    default: Callable[[Json, KubeVirtConfiguration, str | None], Json] | None = None
    """Return the object with its defaults, or the same object. It fits its CRD's schema, but is not validated.

    The text is the seed of generated values (unique per object) at creation, and None for an existing object.
    """
    keep: Callable[[Json, Json], Json] | None = None
    """Return the new object with values of the old one: generated ones that it omits, and equal ones as stored."""
    finalizer: str = ""
    """`default` sets it on each object. Users can remove it only during the deletion of the object; see deletion."""
    add_schema_rules: Callable[[Schema], None] = _leave
    """Add rules that the API server checks to the spec's schema; see controlplane.api.schema.cel."""
