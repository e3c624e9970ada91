# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a VM and its VMI that a pool reads."""

from __future__ import annotations

import msgspec
from kubevirt_api.names import POOL_REVISION, POOL_TEMPLATE
from kubevirt_api.run_strategies import ALWAYS

from controlplane.api.objects.meta import Node, ObjectMeta
from controlplane.api.objects.phase import is_final
from controlplane.api.schema.bounds import LabelMap
from controlplane.virt_controller.members.member import Fingerprint, MemberView, identity, pairs


class InstanceSpec(Node, frozen=True, kw_only=True):
    node_selector: LabelMap = msgspec.field(default_factory=dict)


class InstanceTemplate(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: InstanceSpec = InstanceSpec()


class MemberSpec(Node, frozen=True, kw_only=True):
    running: bool | None = None
    run_strategy: str | None = None
    template: InstanceTemplate = InstanceTemplate()


class Member(MemberView, frozen=True, kw_only=True):
    """A VM that belongs to a pool."""

    spec: MemberSpec = MemberSpec()

    @property
    def is_kept_running(self) -> bool:
        """Whether the VM controller creates its VMI again after a deletion."""
        return self.spec.run_strategy == ALWAYS if self.spec.run_strategy else self.spec.running is True

    @property
    def revision(self) -> str:
        """The revision of the pool's template that the VM has; "" if none."""
        return self.metadata.labels.get(POOL_REVISION, "")

    @property
    def template_hash(self) -> str:
        """The hash of the template that the next VMI is created from; "" if none."""
        return self.spec.template.metadata.annotations.get(POOL_TEMPLATE, "")


class Run(MemberView, frozen=True, kw_only=True):
    """The VMI of a VM."""

    @property
    def is_ending(self) -> bool:
        return self.is_deleting or is_final(self.status.phase)

    @property
    def is_ready(self) -> bool:
        return not self.is_ending and super().is_ready

    @property
    def template_hash(self) -> str:
        """The hash of the template that the VMI was created from; "" if none."""
        return self.metadata.annotations.get(POOL_TEMPLATE, "")


_decoder = msgspec.json.Decoder(Member)
_run_decoder = msgspec.json.Decoder(Run)


def read_member(raw: bytes) -> Member:
    """Decode a VM. Raises msgspec.DecodeError."""
    return _decoder.decode(raw)


def read_run(raw: bytes) -> Run:
    """Decode a VMI. Raises msgspec.DecodeError."""
    return _run_decoder.decode(raw)


def fingerprint(member: Member) -> Fingerprint:
    """Return the fields that a pool's decisions depend on. Other changes of a VM enqueue no pool."""
    state = member.is_deleting, member.is_ready, member.is_kept_running, member.template_hash
    return *identity(member), state, pairs(member.spec.template.metadata.labels.items())


def run_fingerprint(run: Run) -> Fingerprint:
    """Return the fields of a VMI that a pool's decisions depend on."""
    return run.metadata.uid, run.is_ending, run.is_ready, run.template_hash
