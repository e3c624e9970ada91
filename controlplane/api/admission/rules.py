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


def _leave(_unused: Schema) -> None:
    """Leave a schema unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one kind beside those of single fields, which hang on its types."""

    spec: Callable[[Any, KubeVirtConfiguration], Iterator[Problem]] = _nothing
    """What is wrong with a spec of the kind's type: rules over several fields. Paths begin with "spec"."""
    plain_spec: Callable[[Any], Iterator[Problem]] = _nothing
    """The same for a spec as plain values, which may be anything: for what must be said even if nothing fits."""
    whole: Callable[[Json], Iterator[Problem]] = _nothing
    """What is wrong between metadata and spec of an object as it was written, good or not."""
    data_volumes: Callable[[Json], Iterator[str]] = _nothing
    """The fields of an object as it was written that ask for DataVolumes, which not every cluster has."""
    metadata: Callable[[ObjectMeta, ObjectMeta], Iterator[Problem]] = _nothing
    """What is wrong with the metadata, given the one before the write; names are judged for every kind."""
    unchangeable: str = ""
    """Why the spec stays as it was created, and what to do instead; "" if it may change."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """By field of the spec that stays as it was created: what to do instead."""
    warn: Callable[[Json], Iterator[str]] = _nothing
    """What to tell whoever writes such an object, although it is accepted."""
    default: Callable[[Json, KubeVirtConfiguration, str | None], Json] | None = None
    """Return the object with its defaults, or the very same one; it must fit its CRD's schema, and nothing more.

    The text is the seed of what is made up at creation (unique per object), None when the object exists already.
    """
    keep: Callable[[Json, Json], Json] | None = None
    """Return the object with what one of its kind was given at creation and must not lose, from the one before it."""
    finalizer: str = ""
    """What `default` puts on each object, and users cannot take off."""
    add_schema_rules: Callable[[Schema], None] = _leave
    """Add to the spec's schema what the API server checks by itself; see controlplane.api.schema.cel."""
