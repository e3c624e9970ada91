# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachinePool: a number of VirtualMachines from one template. Types only."""

from __future__ import annotations

from typing import Annotated, ClassVar

from controlplane.api.objects.affinity import NodeRequirement
from controlplane.api.objects.meta import Condition, Empty, Node, Object, ObjectMeta
from controlplane.api.objects.resources import VIRTUAL_MACHINE_POOL, Resource
from controlplane.api.objects.selector import LabelSelector
from controlplane.api.objects.vm import VirtualMachineSpec
from controlplane.api.schema.bounds import bounded, one_of

MOST_REPLICAS = 10_000
BURST = 250
"""How many machines are begun, changed or deleted at a time."""
ASCENDING, DESCENDING, NEWEST, OLDEST, RANDOM = "AscendingOrder", "DescendingOrder", "Newest", "Oldest", "Random"

IntOrPercent = Annotated[str | int, bounded(int_or_percent=True)]
Kept = Annotated[str, one_of("Disabled", unbuilt=("Offline", "Online"))]


class PoolMachineTemplate(Node, frozen=True, kw_only=True):
    """The VirtualMachine that is made."""

    metadata: ObjectMeta = ObjectMeta()
    """Labels and annotations that each VirtualMachine gets."""
    spec: VirtualMachineSpec
    """The spec of each. Names of dataVolumeTemplates, and of volumes that name them, get its number at the end."""


class PoolNameGeneration(Node, frozen=True, kw_only=True):
    """Which further names get the number of the machine at their end."""

    append_index_to_config_map_refs: bool = False
    """Those of ConfigMaps."""
    append_index_to_secret_refs: bool = False
    """Those of Secrets, cloud-init's included."""


class PoolSelectors(Node, frozen=True, kw_only=True):
    """Which machines may be chosen. All of it must be met."""

    label_selector: LabelSelector | None = None
    """What the labels must be that a machine gives its instance (template.metadata.labels)."""
    node_selector_requirement_matcher: tuple[NodeRequirement, ...] = ()
    """What a machine's nodeSelector must be."""


class PoolSelectionPolicy(Node, frozen=True, kw_only=True):
    """Which machines come first."""

    sort_policy: Annotated[str, one_of(ASCENDING, DESCENDING, NEWEST, OLDEST, RANDOM)] = ""
    """AscendingOrder and DescendingOrder (of their numbers), Newest, Oldest, or Random; Random if not set."""
    selectors: PoolSelectors | None = None
    """Others are left as they are."""


class OpportunisticScaleIn(Node, frozen=True, kw_only=True):
    """Nothing is deleted: that is for others to do."""

    state_preservation: Kept = ""
    """Disabled: what belongs to a deleted machine goes with it."""


class ProactiveScaleIn(Node, frozen=True, kw_only=True):
    """Those that are too many are deleted."""

    selection_policy: PoolSelectionPolicy | None = None
    """Which ones."""
    state_preservation: Kept = ""
    """Disabled: what belongs to a deleted machine goes with it."""


class PoolScaleInStrategy(Node, frozen=True, kw_only=True):
    """What happens to machines that are too many. At most one of them."""

    unmanaged: Empty | None = None
    """Nothing."""
    opportunistic: OpportunisticScaleIn | None = None
    """Nothing: others delete them."""
    proactive: ProactiveScaleIn | None = None
    """They are deleted: this is the default."""


class ProactiveUpdate(Node, frozen=True, kw_only=True):
    """Running machines are restarted with a changed template."""

    selection_policy: PoolSelectionPolicy | None = None
    """Which ones come first, and which are changed at all."""


class PoolUpdateStrategy(Node, frozen=True, kw_only=True):
    """What happens to machines when the template changes. At most one of them."""

    unmanaged: Empty | None = None
    """Nothing: only new machines are made from it."""
    opportunistic: Empty | None = None
    """They are changed, and what runs has it from its next start on."""
    proactive: ProactiveUpdate | None = None
    """They are changed, and those with run strategy Always restarted: this is the default."""


class VirtualMachinePoolSpec(Node, frozen=True, kw_only=True):
    """What the user wants."""

    replicas: Annotated[int, bounded(minimum=0, maximum=MOST_REPLICAS)] = 1
    """How many machines there should be; 1 if not set."""
    selector: LabelSelector
    """Which of its machines count: one whose labels it does not select any more is let go. Stays as it was created."""
    virtual_machine_template: PoolMachineTemplate
    """What each machine is."""
    paused: bool = False
    """Whether nothing is made, changed or deleted for now."""
    name_generation: PoolNameGeneration | None = None
    """How names are made that are to differ between machines."""
    max_unavailable: IntOrPercent | None = None
    """How many machines, or what percentage, may be not ready while they are restarted; 100% if not set, at least 1."""
    scale_in_strategy: PoolScaleInStrategy | None = None
    """What happens to machines that are too many."""
    update_strategy: PoolUpdateStrategy | None = None
    """What happens to machines when the template changes."""


class VirtualMachinePoolStatus(Node, frozen=True, kw_only=True):
    """What became of it. Written by virt-controller."""

    replicas: Annotated[int, bounded(minimum=0)] = 0
    """How many machines there are, those that are going included."""
    ready_replicas: Annotated[int, bounded(minimum=0)] = 0
    """How many of them are ready."""
    label_selector: Annotated[str, bounded(max_length=2**18)] = ""
    """The selector as text, for autoscalers."""
    conditions: tuple[Condition, ...] = ()
    """ReplicaFailure and ReplicaPaused; neither is there while there is nothing to say."""
    batches: Annotated[int, bounded(minimum=0)] = 0
    """How often machines were begun. Written before the first of them is made."""
    begun: Annotated[tuple[Annotated[int, bounded(minimum=0)], ...], bounded(max_items=BURST)] = ()
    """Numbers of the machines that were begun last, while one of them is not known to exist yet."""

    @property
    def batch_size(self) -> int:
        """Size of the newest batch."""
        return len(self.begun)


class VirtualMachinePool(Object, frozen=True, kw_only=True):
    """So many VirtualMachines of one template, named after the pool and numbered; those that go are replaced."""

    resource: ClassVar[Resource] = VIRTUAL_MACHINE_POOL

    spec: VirtualMachinePoolSpec
    """What the user wants."""
    status: VirtualMachinePoolStatus = VirtualMachinePoolStatus()
    """What became of it."""
