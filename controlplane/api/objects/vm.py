# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachine: the machine that a user declares, and its state. Types only."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from kubevirt_api import run_strategies

from controlplane.api.objects.meta import Condition, Node, Object, ObjectMeta
from controlplane.api.objects.resources import VIRTUAL_MACHINE, Resource
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.schema.bounds import bounded, one_of


class VirtualMachineInstanceTemplate(Node, frozen=True, kw_only=True):
    """The VirtualMachineInstance that is made when the VM starts."""

    metadata: ObjectMeta = ObjectMeta()
    """Labels and annotations that the VirtualMachineInstance gets."""
    spec: VirtualMachineInstanceSpec
    """The machine."""


class DataVolumeTemplate(Node, frozen=True, kw_only=True):
    """A DataVolume that is made once, belongs to the VM and goes with it."""

    metadata: ObjectMeta = ObjectMeta()
    """Name, and labels and annotations that the DataVolume gets."""
    spec: dict[str, Any]
    """What CDI makes and fills, handed on as it is."""


class VirtualMachineSpec(Node, frozen=True, kw_only=True):
    """What the user wants."""

    running: bool | None = None
    """Deprecated: true means runStrategy Always, false means Halted. Excludes runStrategy."""
    run_strategy: Annotated[str, one_of(*run_strategies.BUILT, unbuilt=("WaitAsReceiver",))] | None = None
    """When the machine runs: Always, Halted, Manual, RerunOnFailure or Once. Excludes running."""
    template: VirtualMachineInstanceTemplate
    """What runs."""
    data_volume_templates: Annotated[tuple[DataVolumeTemplate, ...], bounded(max_items=64)] = ()
    """DataVolumes that belong to the machine, where the cluster has CDI. A volume of the template names each."""


class StateChangeRequest(Node, frozen=True, kw_only=True):
    """A start or stop that was asked for through the API and is not done yet."""

    action: str
    """Start or Stop."""
    data: dict[str, str] = msgspec.field(default_factory=dict)
    """Options of the request, e.g. paused: "true"."""
    uid: str | None = None
    """UID of the VirtualMachineInstance to stop."""


class StartFailure(Node, frozen=True, kw_only=True):
    """Starts that failed in a row; delays the next one."""

    consecutive_fail_count: int = 0
    """How many VirtualMachineInstances in a row failed before they ran."""
    last_failed_vmi_uid: str = msgspec.field(default="", name="lastFailedVMIUID")
    """UID of the last one."""
    retry_after_timestamp: str | None = None
    """When the next start is tried."""


class VirtualMachineStatus(Node, frozen=True, kw_only=True):
    """What became of it. Written by virt-controller."""

    created: bool = False
    """Whether a VirtualMachineInstance exists."""
    ready: bool = False
    """Whether the machine runs and is ready."""
    printable_status: str = ""
    """One word for people, e.g. Running, Stopped, ErrorUnschedulable."""
    run_strategy: str = ""
    """The run strategy that was last acted on."""
    observed_generation: int = 0
    """Newest generation of the spec whose template is what the running machine was made from."""
    desired_generation: int = 0
    """Generation of the spec that was last looked at."""
    conditions: tuple[Condition, ...] = ()
    """Ready, Failure, RestartRequired and the conditions of the VirtualMachineInstance."""
    state_change_requests: tuple[StateChangeRequest, ...] = ()
    """Starts and stops asked for and not done yet. Only the first counts."""
    start_revision_name: Annotated[str, bounded(max_length=253)] = ""
    """ControllerRevision of the last start. The next start with another spec deletes it."""
    start_failure: StartFailure | None = None
    """Failed starts and when the next one is tried."""


class VirtualMachine(Object, frozen=True, kw_only=True):
    """A virtual machine: it may run or be halted, and outlives each run."""

    resource: ClassVar[Resource] = VIRTUAL_MACHINE

    spec: VirtualMachineSpec
    """What the user wants."""
    status: VirtualMachineStatus = VirtualMachineStatus()
    """What became of it."""

    @property
    def run_strategy(self) -> str:
        """spec.runStrategy, or its equivalent of the deprecated spec.running; Halted when neither is set."""
        if self.spec.run_strategy:
            return self.spec.run_strategy
        return "Always" if self.spec.running else "Halted"
