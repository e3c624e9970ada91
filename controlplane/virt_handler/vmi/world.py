# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler knows about one VMI when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.observed import Observed
from controlplane.domain.state import State
from controlplane.virt_handler.network.pod_interface import PodInterface


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a launcher's domain can never be started. Trying again would not help."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was last seen of a launcher over our own connection. The default says: nothing is known."""

    is_connected: bool = False
    """False says nothing about the guest."""
    state: State | None = None
    """While connected: None means that libvirt knows no domain of this VMI."""
    observed: Observed | None = None
    is_network_ready: bool = False
    interface: PodInterface | None = None
    """The Pod's eth0, once its network was set up."""
    shutdown_asked_at: float | None = None
    """Monotonic seconds of the last request to shut down."""
    destroys: int = 0
    """How often the domain was told to end at once."""
    resume_asked_at: float | None = None
    failure: Failure | None = None
    trouble: str = ""
    """Why there is no contact; for people."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher Pod of this node."""

    pod: Pod
    is_gone: bool = False
    """The API server does not know the Pod any more."""
    sighting: Sighting = field(default_factory=Sighting)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: str
    vmi: VirtualMachineInstance | None
    """None: it is not among this node's VMIs, which is no proof that it does not exist."""
    launchers: tuple[Launcher, ...] = ()
    """Launcher Pods of this node that name the VMI as their controller: by UID, or by name when vmi is None."""
    now: float
    """Seconds since the epoch."""
    monotonic: float
    deleting_since: float | None = None
    """Monotonic seconds when this process first saw the VMI being deleted."""
    orphaned_since: float | None = None
    """Monotonic seconds since when the VMI is not among this node's."""

    @property
    def launcher(self) -> Launcher | None:
        """The launcher of this run: the granted Pod; before the grant the only one there is."""
        if self.vmi is None:
            return None
        granted = self.vmi.status.active_pods
        mine = [one for one in self.launchers if one.pod.uid in granted or not granted]
        return mine[0] if len(mine) == 1 else None


@dataclass(frozen=True, slots=True)
class PrepareNetwork:
    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class StartDomain:
    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Press the power button."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Destroy:
    """End QEMU. Every cause is one that a user, a policy or the end of the run has given."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Resume:
    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DestroyOrphan:
    """End a domain after the API server itself has said that its VMI does not exist."""

    pod_uid: str
    vmi_uid: str
    because: str


Action = PrepareNetwork | StartDomain | ShutDown | Destroy | Resume | DestroyOrphan
