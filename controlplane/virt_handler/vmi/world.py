# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed state of one VMI on this node, and the actions on it. Values only."""

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
    """Why a launcher's domain can never start. A retry would not help."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """The migration of the guest to another node that this process carries out, or carried out last."""

    migration_uid: str
    is_over: bool = False
    has_moved: bool = False
    """QEMU here is gone, and the target runs the guest."""
    reason: str = ""
    """Why it failed."""
    abort_asked_at: float | None = None
    """Monotonic seconds of the last request to libvirt to abort it."""


@dataclass(frozen=True, slots=True)
class LauncherStatus:
    """The last observed state of a launcher. By default everything is unknown."""

    is_here: bool = False
    """The launcher has a socket to connect to and a network namespace to set up."""
    is_admitted: bool = False
    """A VMI grants the run to its Pod, so virt-handler connects to it."""
    is_connected: bool = False
    """False proves nothing about the guest."""
    state: State | None = None
    """While connected: None means that libvirt has no domain of this VMI."""
    has_run: bool = False
    """A guest has been up in this Pod: none is ever started here again."""
    observed: Observed | None = None
    agent: AgentState | None = None
    """What the guest's agent reported; None while it is unknown whether there is an agent."""
    is_network_ready: bool = False
    interface: PodInterface | None = None
    """The Pod's eth0, once its network is set up."""
    network_trouble: str = ""
    """Why the last repair of the network failed; "" if it succeeded."""
    shutdown_asked_at: float | None = None
    """Monotonic seconds of the last request to shut down."""
    destroy_asked_at: float | None = None
    destroys: int = 0
    """How many requests to destroy the domain were sent."""
    resume_asked_at: float | None = None
    resumes: int = 0
    """How often the guest was resumed in a row after an I/O error."""
    is_paused_by_user: bool | None = None
    """A user has paused a guest that was paused already for another reason; None: this process does not know yet
    (user_requests)."""
    has_gone_on: bool = False
    """This process has observed the guest run in this Pod; after a failed migration: since that."""
    transfer: Transfer | None = None
    failure: Failure | None = None
    trouble: str = ""
    """Why there is no connection, as a text for users."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The VMI of a launcher before the hand-over, read once. It grants no start, only network preparation."""

    vmi: VirtualMachineInstance | None
    """None: the API server has no VMI of that name and UID."""


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """The failure of the last operation. It is retried after a growing pause."""

    message: str
    is_refusal: bool
    """False: there was no connection, or it broke; the operation may have taken effect."""
    at: float
    """Monotonic seconds."""
    count: int = 1
    """How many failures there were in a row."""

    def seconds_left(self, monotonic: float, first_seconds: float) -> float:
        """Return the seconds until the next attempt. The pause starts at first_seconds, doubles, and is at most
        AGAIN_LAST_SECONDS."""
        pause = min(AGAIN_LAST_SECONDS, first_seconds * 2.0 ** min(self.count - 1, 30))
        return pause - (monotonic - self.at)


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher Pod of this node."""

    pod: Pod
    is_gone: bool = False
    """The API server no longer has the Pod."""
    status: LauncherStatus = field(default_factory=LauncherStatus)
    expected: Expected | None = None
    """None: not read yet."""
    operation: str = ""
    """The operation that is under way; "" if none is. Its end enqueues the VMI's key."""
    failed_operation: FailedOperation | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    """Directory and processes of a Pod that the node still has."""

    has_directory: bool
    processes: int
    emulators: int = 0
    """How many of the processes are QEMU."""

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing of the Pod can run here."""
        return not self.has_directory and self.processes == 0


@dataclass(frozen=True, slots=True)
class Look:
    """The last search of the node for an unlisted launcher, or for a guest that libvirt lost."""

    traces: Traces
    at: float
    """Monotonic seconds."""
    count: int
    """How many searches there were."""


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """virt-node is not reachable, so there is no launcher socket, no network setup and no search of the node."""

    why: str
    """A text for users."""
    since: float
    """Monotonic seconds when this process first observed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: str
    vmi: VirtualMachineInstance | None
    """None: no VMI of that name is on this node. That does not prove that the VMI does not exist."""
    launchers: tuple[Launcher, ...] = ()
    """Launcher Pods of this node that name the VMI as their controller: by UID, or by name if vmi is None."""
    now: float
    """Seconds since the epoch."""
    monotonic: float
    deleting_since: float | None = None
    """Monotonic seconds when this process first observed the VMI's deletion."""
    orphaned_since: float | None = None
    """Monotonic seconds when this process first observed that no VMI of this node has the name."""
    are_launchers_known: bool = True
    """Whether all launcher Pods of this node are listed. Before that, a missing Pod proves nothing."""
    node_trouble: NodeTrouble | None = None
    """None: virt-node is reachable."""
    start_blocked_reason: str = ""
    """Why no guest may start on this node now; "" if guests may start (recovery)."""
    look: Look | None = None
    """The last search for the missing Pod (liveness.missing_pod)."""

    @property
    def launcher(self) -> Launcher | None:
        """The launcher of this run: the Pod that has the grant; without a grant, the only launcher Pod."""
        if self.vmi is None:
            return None
        granted = self.vmi.status.active_pods
        launchers = (
            [launcher for launcher in self.launchers if launcher.pod.uid in granted] if granted else self.launchers
        )
        return launchers[0] if len(launchers) == 1 else None

    @property
    def lost_pod(self) -> str:
        """The Pod here that has the grant but that the API server does not list, by UID; "" if there is none."""
        if self.vmi is None or not self.are_launchers_known:
            return ""
        listed = {launcher.pod.uid for launcher in self.launchers if not launcher.is_gone}
        lost = [uid for uid, node in self.vmi.status.active_pods.items() if node == self.node and uid not in listed]
        return lost[0] if len(lost) == 1 else ""


@dataclass(frozen=True, slots=True)
class ReadVmi:
    """Read a launcher's VMI once, so that its network is ready at the hand-over."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LookForLauncher:
    """Search the node for a Pod's directory and processes."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to a launcher and stay connected. Before that, nothing is read from it."""

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
    """Press the guest's power button."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Destroy:
    """End QEMU. The cause is always a user, a policy or the end of the run."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Resume:
    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class PlugCpus:
    """Plug the virtual CPUs of the VMI's spec into a guest whose Pod was created for them."""

    pod_uid: str
    count: int
    because: str


@dataclass(frozen=True, slots=True)
class PlugMemory:
    """Request the memory of the VMI's spec from a guest whose Pod was created for it."""

    pod_uid: str
    requested_bytes: int
    """Beyond its size at boot."""
    because: str


@dataclass(frozen=True, slots=True)
class BeginTransfer:
    """Send the guest to the target of its migration, once the API server has stored the start."""

    pod_uid: str
    migration_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class AbortTransfer:
    """Abort the migration that this process carries out: the guest stays here."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DestroyRemoved:
    """End a domain after the API server has confirmed that its Pod does not exist. The cache is no proof."""

    pod_uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DestroyOrphan:
    """End a domain after the API server has confirmed that its VMI does not exist."""

    pod_uid: str
    vmi_uid: str
    because: str


Operation = PrepareNetwork | StartDomain | ShutDown | Destroy | Resume | PlugCpus | PlugMemory
"""Actions that a session performs, one at a time (launchers/operations.py)."""
SessionAction = Operation | ReadVmi | Dial | DestroyRemoved | DestroyOrphan | BeginTransfer | AbortTransfer
Action = SessionAction | LookForLauncher
