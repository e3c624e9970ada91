# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod as far as virt-handler cares: types for lenient reading, and questions about it. Pure."""

from __future__ import annotations

import re

import msgspec

from controlplane.api.meta import Condition, Node, ObjectMeta, OwnerReference, Quantity
from controlplane.api.resources import Key
from controlplane.virt_handler.device_plugins.device import KVM

COMPUTE = "compute"
MESSAGE_LIMIT = 512
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a0-\u2027\u202f-\u205f\u2070-\ud7ff\ue000-\ufffd]+")


class Terminated(Node, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Node, frozen=True, kw_only=True):
    terminated: Terminated | None = None


class ContainerStatus(Node, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()


class PodStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodResources(Node, frozen=True, kw_only=True):
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Container(Node, frozen=True, kw_only=True):
    name: str = ""
    resources: PodResources = msgspec.field(default_factory=PodResources)


class PodSpec(Node, frozen=True, kw_only=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()


class Pod(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def owner(self) -> OwnerReference | None:
        """The VMI that controls it, by the API server's word; labels prove nothing."""
        return next(
            (
                one
                for one in self.metadata.owner_references
                if one.controller
                and one.kind == "VirtualMachineInstance"
                and one.api_version.startswith("kubevirt.io/")
            ),
            None,
        )

    @property
    def vmi_key(self) -> Key | None:
        owner = self.owner
        return None if owner is None else Key(self.metadata.namespace, owner.name)

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_kvm(self) -> bool:
        """Tell whether its launcher was given /dev/kvm; the domain must not ask for what is not there."""
        return any(KVM.resource in one.resources.limits for one in self.spec.containers if one.name == COMPUTE)

    @property
    def terminated(self) -> Terminated | None:
        """How the launcher's container ended, by the kubelet's word."""
        return next((one.state.terminated for one in self.status.container_statuses if one.name == COMPUTE), None)

    @property
    def is_over(self) -> bool:
        """Tell whether nothing in it runs any more, by the kubelet's word."""
        return self.status.phase in ("Succeeded", "Failed")


def bounded(text: str) -> str:
    """Make a text that comes from the tenant's side fit for a condition: printable, one line, not long."""
    return _UNPRINTABLE.sub(" ", text[: 4 * MESSAGE_LIMIT]).strip()[:MESSAGE_LIMIT]


def word(text: str) -> str:
    """Make a reason of a text: letters and digits only."""
    return re.sub(r"[^A-Za-z0-9]", "", text)[:64] or "PodFailed"
