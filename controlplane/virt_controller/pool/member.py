# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The little that a pool reads of a machine, and of the instance that it runs as: it may have thousands."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import POOL_REVISION, POOL_TEMPLATE
from kubevirt_api.run_strategies import ALWAYS

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Node, ObjectMeta
from controlplane.api.objects.phase import is_final
from controlplane.api.schema.bounds import LabelMap


class InstanceSpec(Node, frozen=True, kw_only=True):
    node_selector: LabelMap = msgspec.field(default_factory=dict)


class InstanceTemplate(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: InstanceSpec = InstanceSpec()


class MemberSpec(Node, frozen=True, kw_only=True):
    running: bool | None = None
    run_strategy: str | None = None
    template: InstanceTemplate = InstanceTemplate()


class MemberStatus(Node, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class Member(Node, frozen=True, kw_only=True):
    """A VirtualMachine that belongs to a pool."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MemberSpec = MemberSpec()
    status: MemberStatus = MemberStatus()

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.status.conditions, condition_types.READY)

    @property
    def is_kept_running(self) -> bool:
        """Tell whether its controller makes an instance anew that was deleted."""
        return self.spec.run_strategy == ALWAYS if self.spec.run_strategy else self.spec.running is True

    @property
    def revision(self) -> str:
        """What template of the pool it has; "" for none that is known."""
        return self.metadata.labels.get(POOL_REVISION, "")

    @property
    def made_of(self) -> str:
        """What an instance that it makes now is made of."""
        return self.spec.template.metadata.annotations.get(POOL_TEMPLATE, "")


class RunStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Run(Node, frozen=True, kw_only=True):
    """The instance that a machine runs as."""

    metadata: ObjectMeta = ObjectMeta()
    status: RunStatus = RunStatus()

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None or is_final(self.status.phase)

    @property
    def is_ready(self) -> bool:
        return not self.is_going and conditions.is_true(self.status.conditions, condition_types.READY)

    @property
    def made_of(self) -> str:
        return self.metadata.annotations.get(POOL_TEMPLATE, "")


_decoder = msgspec.json.Decoder(Member)
_run_decoder = msgspec.json.Decoder(Run)
Gist = tuple[object, ...]


def read_member(raw: bytes) -> Member:
    """Read a machine. Raises msgspec.DecodeError for what does not fit."""
    return _decoder.decode(raw)


def read_run(raw: bytes) -> Run:
    """Read an instance. Raises msgspec.DecodeError for what does not fit."""
    return _run_decoder.decode(raw)


def fingerprint(member: Member) -> Gist:
    """Return what a pool's decisions depend on; everything else of a machine may change unseen."""
    meta, owners = member.metadata, tuple((one.uid, one.controller) for one in member.metadata.owner_references)
    template = member.spec.template
    counts = (member.is_deleting, member.is_ready, member.is_kept_running, member.made_of)
    return meta.uid, _words(meta.labels.items()), owners, counts, _words(template.metadata.labels.items())


def gist_of_run(run: Run) -> Gist:
    """Return what a pool's decisions depend on of an instance."""
    return run.metadata.uid, run.is_going, run.is_ready, run.made_of


def _words(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(pairs))
