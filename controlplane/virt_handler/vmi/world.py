# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler knows about one VMI when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.agent import AgentState
from controlplane.domain.observed import Observed
from controlplane.domain.state import State
from controlplane.links.node.messages import PodInterface

AGAIN_LAST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a launcher's domain can never be started. Trying again would not help."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """A migration of the guest to another node that this process carries out, or did last."""

    migration_uid: str
    is_over: bool = False
    has_moved: bool = False
    """QEMU here is gone for good, and the target has the guest."""
    reason: str = ""
    """Why it failed."""
    abort_asked_at: float | None = None
    """Monotonic seconds when libvirt was told last to give it up."""


@dataclass(frozen=True, slots=True)
class LauncherStatus:
    """What was last seen of a launcher over our own connection. The default says: nothing is known."""

    is_here: bool = False
    """The launcher is prepared: we hold a socket to dial, and there is a network to set up."""
    is_admitted: bool = False
    """We were told to dial it: a VMI grants it the run."""
    is_connected: bool = False
    """False says nothing about the guest."""
    state: State | None = None
    """While connected: None means that libvirt knows no domain of this VMI."""
    has_run: bool = False
    """A guest was seen up in this Pod: it is never started here again."""
    observed: Observed | None = None
    told: AgentState | None = None
    """What the guest's agent has told; None: it is not known yet whether there is one."""
    is_network_ready: bool = False
    interface: PodInterface | None = None
    """The Pod's eth0, once its network was set up."""
    network_trouble: str = ""
    """Why the network that was set up could not be seen to again; "" while it could."""
    shutdown_asked_at: float | None = None
    """Monotonic seconds of the last request to shut down."""
    destroy_asked_at: float | None = None
    destroys: int = 0
    """How often the domain was told to end at once."""
    resume_asked_at: float | None = None
    resumes: int = 0
    """How often the guest was told to go on after an I/O error, in a row."""
    is_paused_by_user: bool | None = None
    """A person has paused a guest that something else had paused before; None: this process has not seen yet (person).
    """
    has_gone_on: bool = False
    """This process has seen the guest run in this Pod, since it sent it to no avail, if it has."""
    transfer: Transfer | None = None
    failure: Failure | None = None
    trouble: str = ""
    """Why there is no contact; for people."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The VMI of a launcher before the hand-over, read once. Never a grant: only a network is prepared by it."""

    vmi: VirtualMachineInstance | None
    """None: the API server knows no VMI of that name and UID."""


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """What came of the last verb: nothing. It is tried again later, and ever later."""

    message: str
    is_refusal: bool
    """False: there was no contact, or it broke; what was asked may have happened."""
    at: float
    """Monotonic seconds."""
    count: int = 1
    """How many there were in a row."""

    def seconds_left(self, monotonic: float, first_seconds: float) -> float:
        """Tell how long to wait yet before it is tried again: first so long, doubling up to AGAIN_LAST_SECONDS."""
        whole = min(AGAIN_LAST_SECONDS, first_seconds * 2.0 ** min(self.count - 1, 30))
        return whole - (monotonic - self.at)


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher Pod of this node."""

    pod: Pod
    is_gone: bool = False
    """The API server does not know the Pod any more."""
    status: LauncherStatus = field(default_factory=LauncherStatus)
    expected: Expected | None = None
    """None: not read yet."""
    operation: str = ""
    """The verb that is being carried out; "" when none is. Its end wakes the VMI's key."""
    failed_operation: FailedOperation | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    """What the node itself still has of a Pod."""

    has_directory: bool
    processes: int
    emulators: int = 0
    """Those of the processes that are QEMU."""

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing of it can run here."""
        return not self.has_directory and self.processes == 0


@dataclass(frozen=True, slots=True)
class Look:
    """The last look at the node for a launcher that the API server does not list, or a guest that libvirt lost."""

    traces: Traces
    at: float
    """Monotonic seconds."""
    count: int
    """How many looks there were."""


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """virt-node is not there: no launcher's socket is handed over, no network set up, no trace looked for."""

    why: str
    """For people."""
    since: float
    """Monotonic seconds when this process first saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: str
    vmi: VirtualMachineInstance | None
    """None: no VMI of that name was handed to this node, which is no proof that it does not exist."""
    launchers: tuple[Launcher, ...] = ()
    """Launcher Pods of this node that name the VMI as their controller: by UID, or by name when vmi is None."""
    now: float
    """Seconds since the epoch."""
    monotonic: float
    deleting_since: float | None = None
    """Monotonic seconds when this process first saw the VMI being deleted."""
    orphaned_since: float | None = None
    """Monotonic seconds since when the VMI is not among this node's."""
    are_launchers_known: bool = True
    """Whether all launcher Pods of this node are known: before that, nothing follows from the want of one."""
    node_trouble: NodeTrouble | None = None
    """None: what only root can do on the node is done."""
    held: str = ""
    """Why no guest is started on this node now; "" when it may be (clearing)."""
    look: Look | None = None
    """At the node, for the Pod that is sought (verdict.sought_pod)."""

    @property
    def launcher(self) -> Launcher | None:
        """The launcher of this run: the granted Pod, whatever others there are; without a grant the only one."""
        if self.vmi is None:
            return None
        granted = self.vmi.status.active_pods
        mine = [one for one in self.launchers if one.pod.uid in granted] if granted else self.launchers
        return mine[0] if len(mine) == 1 else None

    @property
    def lost_pod(self) -> str:
        """UID of the Pod that was granted the run here and that the API server does not list; "" when there is none."""
        if self.vmi is None or not self.are_launchers_known:
            return ""
        listed = {one.pod.uid for one in self.launchers if not one.is_gone}
        here = [uid for uid, node in self.vmi.status.active_pods.items() if node == self.node and uid not in listed]
        return here[0] if len(here) == 1 else ""


@dataclass(frozen=True, slots=True)
class ReadVmi:
    """Learn once which VMI a launcher is for, so that its network is ready when the hand-over comes."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LookForLauncher:
    """Look on the node itself for what is left of a Pod."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Dial:
    """Make contact with a launcher, and keep it: before that not a byte of it is read."""

    pod_uid: str
    because: str


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
class PlugCpus:
    """Have the guest see as many virtual CPUs as its VMI says, once it is in a Pod that was made for them."""

    pod_uid: str
    count: int
    because: str


@dataclass(frozen=True, slots=True)
class PlugMemory:
    """Ask the guest to have as much memory as its VMI says, once it is in a Pod that was made for it."""

    pod_uid: str
    requested_bytes: int
    """Beside what it began with."""
    because: str


@dataclass(frozen=True, slots=True)
class BeginTransfer:
    """Send the guest to the target of its migration, once the API server has taken that it begins."""

    pod_uid: str
    migration_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class AbortTransfer:
    """Give up the migration that this process carries out: the guest stays."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DestroyRemoved:
    """End a domain after the API server itself has said that its Pod does not exist: it may only be listed no more."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DestroyOrphan:
    """End a domain after the API server itself has said that its VMI does not exist."""

    pod_uid: str
    vmi_uid: str
    because: str


Operation = PrepareNetwork | StartDomain | ShutDown | Destroy | Resume | PlugCpus | PlugMemory
"""Actions that a session performs, one at a time (launchers/operations.py)."""
SessionAction = Operation | ReadVmi | Dial | DestroyRemoved | DestroyOrphan | BeginTransfer | AbortTransfer
Action = SessionAction | LookForLauncher
