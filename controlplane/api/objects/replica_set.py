# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceReplicaSet: a number of instances from one template. Types only."""

from __future__ import annotations

from typing import Annotated, ClassVar

from controlplane.api.objects.meta import Condition, Node, Object
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, Resource
from controlplane.api.objects.selector import LabelSelector
from controlplane.api.objects.vm import VirtualMachineInstanceTemplate
from controlplane.api.schema.bounds import bounded

MOST_REPLICAS = 10_000
BURST = 250
"""How many instances are begun, or deleted, at a time."""


class VirtualMachineInstanceReplicaSetSpec(Node, frozen=True, kw_only=True):
    """What the user wants."""

    replicas: Annotated[int, bounded(minimum=0, maximum=MOST_REPLICAS)] = 1
    """How many instances there should be; 1 if not set."""
    selector: LabelSelector
    """Which instances count: those that it selects and that belong to this set, or to nobody."""
    template: VirtualMachineInstanceTemplate
    """What each instance is. A change of it counts for instances that are made from then on."""
    paused: bool = False
    """Whether nothing is made and nothing is deleted for now."""


class VirtualMachineInstanceReplicaSetStatus(Node, frozen=True, kw_only=True):
    """What became of it. Written by virt-controller."""

    replicas: Annotated[int, bounded(minimum=0)] = 0
    """How many instances there are that are neither over nor going."""
    ready_replicas: Annotated[int, bounded(minimum=0)] = 0
    """How many of them are ready."""
    label_selector: Annotated[str, bounded(max_length=2**18)] = ""
    """The selector as text, for autoscalers."""
    conditions: tuple[Condition, ...] = ()
    """ReplicaFailure and ReplicaPaused; neither is there while there is nothing to say."""
    batches: Annotated[int, bounded(minimum=0)] = 0
    """How often instances were begun. Written before the first of them is made; their names follow from it."""
    batch_size: Annotated[int, bounded(minimum=0, maximum=BURST)] = 0
    """How many were begun last, while one of them is not known to exist yet; else 0."""


class VirtualMachineInstanceReplicaSet(Object, frozen=True, kw_only=True):
    """So many VirtualMachineInstances of one template: those that end are replaced."""

    resource: ClassVar[Resource] = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET

    spec: VirtualMachineInstanceReplicaSetSpec
    """What the user wants."""
    status: VirtualMachineInstanceReplicaSetStatus = VirtualMachineInstanceReplicaSetStatus()
    """What became of it."""
