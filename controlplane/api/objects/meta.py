# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of Kubernetes objects: metadata, conditions, quantities as written, and the base class of our types.

The string literal under a field is its documentation and its description in the CRD.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from controlplane.api.objects.resources import Key, Resource
from controlplane.api.schema.bounds import DnsSubdomain, LabelMap, bounded, one_of

Quantity = Annotated[str | int | float, bounded(quantity=True)]
"""A Kubernetes quantity as a manifest spells it; controlplane.api.objects.quantity makes numbers of it."""


class Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all our types: camelCase in JSON, snake_case here, absent fields stay absent when written."""


class OwnerReference(Node, frozen=True, kw_only=True):
    """The object that this one belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Node, frozen=True, kw_only=True):
    """Name, labels and book-keeping of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: LabelMap = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.name)


class Object(Node, frozen=True, kw_only=True):
    """The base of our kinds: what they are called is said once, by `resource`, and written by decode.encode."""

    resource: ClassVar[Resource]
    """How the API serves this kind."""

    metadata: ObjectMeta = ObjectMeta()
    """Name, labels and book-keeping."""


class Condition(Node, frozen=True, kw_only=True):
    """One observation about an object, e.g. Ready."""

    type: Annotated[str, bounded(max_length=316)]
    """Name of the condition, e.g. Ready."""
    status: Annotated[str, one_of("True", "False", "Unknown")]
    """True, False or Unknown."""
    reason: str = ""
    """One CamelCase word that says why."""
    message: str = ""
    """One sentence for people that says why."""
    last_probe_time: Annotated[str, bounded(max_length=64)] | None = None
    """When the condition was last checked, if that is recorded."""
    last_transition_time: Annotated[str, bounded(max_length=64)] | None = None
    """When the status last changed."""


class LocalObjectReference(Node, frozen=True, kw_only=True):
    """An object in the same namespace."""

    name: DnsSubdomain = ""
    """Name of the object."""


Empty = dict[str, Any]
"""An object without fields of its own: its presence is what counts."""
