# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt: the configuration of the control plane, and its state. Types only."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from controlplane.api.objects.meta import Condition, Node, Object, Quantity
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import KUBEVIRT, Resource
from controlplane.api.objects.start_limits import LONGEST_TIMEOUT_SECONDS, MOST_FURTHER_ATTEMPTS
from controlplane.api.objects.vmi.domain import MAX_VCPUS
from controlplane.api.schema.bounds import PullPolicy, bounded, one_of

LIVE_MIGRATE, EVICT = "LiveMigrate", "Evict"
TLS12, TLS13 = "VersionTLS12", "VersionTLS13"
LIVE_UPDATE, STAGE = "LiveUpdate", "Stage"
LONGEST_QUARANTINE_SECONDS = 86_400
UpdateMethod = Annotated[str, one_of(LIVE_MIGRATE, EVICT)]


Verbosity = Annotated[int, bounded(minimum=0, maximum=2**31 - 1)]


class LogVerbosity(Node, frozen=True, kw_only=True):
    """How much the components log: 1 and 2 are info, from 3 on debug, 0 is what was deployed."""

    virt_api: Verbosity = msgspec.field(default=0, name="virtAPI")
    """Of virt-api."""
    virt_controller: Verbosity = 0
    """Of virt-controller."""
    virt_handler: Verbosity = 0
    """Of virt-handler."""
    virt_launcher: Verbosity = 0
    """Of launchers that start from now on."""
    virt_operator: Verbosity = 0
    """No effect: the control plane has no virt-operator."""
    node_verbosity: dict[str, Verbosity] = msgspec.field(default_factory=dict)
    """Of virt-api, virt-controller and virt-handler on a node, by its name; instead of the component's."""


class DeveloperConfiguration(Node, frozen=True, kw_only=True):
    """Settings that trade safety or speed."""

    use_emulation: bool = False
    """Run machines without KVM, by emulation, where a node has none. Slow, and not an isolation boundary."""
    cpu_allocation_ratio: Annotated[int, bounded(minimum=1, maximum=1000)] = msgspec.field(
        default=10, name="cpuAllocationRatio"
    )
    """Virtual CPUs per CPU that a Pod requests when the machine names no CPU request."""
    memory_overcommit: Annotated[int, bounded(minimum=10, maximum=1000)] = 100
    """Guest memory per 100 of memory that a Pod requests when the machine names no memory request."""
    feature_gates: tuple[str, ...] = ()
    """Names of features to switch on. None is known to this version; the list is kept for clients."""
    log_verbosity: LogVerbosity = LogVerbosity()
    """How much the components log."""


class LiveUpdateConfiguration(Node, frozen=True, kw_only=True):
    """How far a machine can grow while it runs, where it does not say so itself."""

    max_cpu_sockets: Annotated[int, bounded(minimum=1, maximum=MAX_VCPUS)] | None = None
    """Most CPU sockets; those of a start times maxHotplugRatio if not set."""
    max_hotplug_ratio: Annotated[int, bounded(minimum=1, maximum=MAX_VCPUS)] = 4
    """How many times the sockets and the memory that a machine starts with it can get."""
    max_guest: Quantity | None = None
    """Most memory of a guest; that of a start times maxHotplugRatio if not set."""


class TLSConfiguration(Node, frozen=True, kw_only=True):
    """What the control plane's servers accept of their clients."""

    min_tls_version: Annotated[str, one_of(TLS12, TLS13)] = msgspec.field(default="", name="minTLSVersion")
    """Oldest version; VersionTLS12 if not set."""
    ciphers: Annotated[tuple[str, ...], bounded(max_items=64)] = ()
    """Cipher suites of TLS 1.2, by their IANA names; only with minTLSVersion VersionTLS12."""


class CustomProfile(Node, frozen=True, kw_only=True):
    """The seccomp profile of launcher Pods; one of the two."""

    localhost_profile: Annotated[str, bounded(max_length=4096)] | None = None
    """Path of a profile below the kubelet's directory of seccomp profiles on each node."""
    runtime_default_profile: bool = False
    """The container runtime's own profile, which is the default."""


class VirtualMachineInstanceProfile(Node, frozen=True, kw_only=True):
    """The seccomp profile of launcher Pods."""

    custom_profile: CustomProfile | None = None
    """Which one."""


class SeccompConfiguration(Node, frozen=True, kw_only=True):
    """Seccomp profiles."""

    virtual_machine_instance_profile: VirtualMachineInstanceProfile | None = None
    """Of launcher Pods that are created from now on."""


class KubeVirtConfiguration(Node, frozen=True, kw_only=True):
    """Settings of all machines."""

    developer_configuration: DeveloperConfiguration = DeveloperConfiguration()
    """Settings that trade safety or speed."""
    cpu_model: str = ""
    """CPU model of machines that name none; host-model if not set."""
    cpu_request: Quantity | None = None
    """CPU request of machines that name none; one CPU per cpuAllocationRatio virtual CPUs if not set."""
    machine_type: str = ""
    """Board of machines that name none; q35 if not set."""
    container_disk_limit: Quantity = "64Gi"
    """Largest disk that a containerDisk may be, from 1Mi to 64Ti: what a guest may write over it on its node.
    Annotation virtops.kubevirt/container-disk-limit of this object overrides it."""
    emulated_machines: tuple[str, ...] = ()
    """Patterns of boards that may be asked for; q35* and pc-q35* if not set."""
    image_pull_policy: PullPolicy = ""
    """Pull policy of the launcher image; IfNotPresent if not set."""
    further_attempts: Annotated[int, bounded(minimum=0, maximum=MOST_FURTHER_ATTEMPTS)] = 2
    """How often the run of a machine is tried again where a node cannot begin it, rather on other nodes.
    Annotation virtops.kubevirt/further-attempts of this object overrides it."""
    run_timeout_seconds: Annotated[int, bounded(minimum=0, maximum=LONGEST_TIMEOUT_SECONDS)] | None = None
    """Seconds that a launcher may take to come up once its Pod has a node, 0 is no bound. If not set, 600 and only
    for what is nothing of the machine's own. Annotation virtops.kubevirt/run-timeout-seconds of this object overrides
    it."""
    quarantine_seconds: Annotated[int, bounded(minimum=0, maximum=LONGEST_QUARANTINE_SECONDS)] = 900
    """For how long a node gets no machines after those of several have failed there and come up elsewhere; 0: never.
    Annotation virtops.kubevirt/quarantine-seconds of this object overrides it."""
    eviction_strategy: Annotated[str, one_of("None", "LiveMigrate", "LiveMigrateIfPossible", "External")] | None = None
    """What happens when the Pod of a machine that says nothing itself is evicted; None (it is stopped) if not set."""
    migrations: MigrationConfiguration = MigrationConfiguration()
    """Settings of migrations."""
    vm_rollout_strategy: Annotated[str, one_of(LIVE_UPDATE, STAGE)] = LIVE_UPDATE
    """LiveUpdate: what of a template can be is changed in the running instance. Stage: all waits for a restart."""
    live_update_configuration: LiveUpdateConfiguration = LiveUpdateConfiguration()
    """How far machines can grow while they run."""
    tls_configuration: TLSConfiguration = TLSConfiguration()
    """What the control plane's servers accept of their clients."""
    seccomp_configuration: SeccompConfiguration = SeccompConfiguration()
    """Seccomp profiles of launcher Pods."""


class WorkloadUpdateStrategy(Node, frozen=True, kw_only=True):
    """How running machines get to the launcher of the control plane that is deployed."""

    # With server-side apply, a manager that removes all parts of the object would leave null, which is refused.
    is_applied_whole: ClassVar[bool] = True

    workload_update_methods: Annotated[tuple[UpdateMethod, ...], bounded(max_items=2)] = ()
    """LiveMigrate: those that can be are moved while they run. Evict: the others are stopped, by evictions of Pods.
    None: they stay in the launcher that they have."""
    batch_eviction_size: Annotated[int, bounded(minimum=0, maximum=1000)] = 10
    """How many are evicted at once; 0 is none."""
    batch_eviction_interval: Annotated[str, bounded(max_length=64)] = "1m"
    """From one batch to the next, as 1m30s; five seconds at least."""


class CertConfig(Node, frozen=True, kw_only=True):
    """How long certificates are valid, and when they are replaced."""

    duration: Annotated[str, bounded(max_length=64)] = ""
    """How long, as 48h; if not set 2160h, and 8760h for the CA."""
    renew_before: Annotated[str, bounded(max_length=64)] = ""
    """How long before its end a certificate is replaced, as 24h; a third of duration if not set."""


class KubeVirtSelfSignConfiguration(Node, frozen=True, kw_only=True):
    """Certificates that the control plane issues for its servers and clients."""

    ca: CertConfig = CertConfig()
    """Of the CA."""
    server: CertConfig = CertConfig()
    """Of what the CA issues."""


class KubeVirtCertificateRotateStrategy(Node, frozen=True, kw_only=True):
    """When the certificates of the control plane are replaced."""

    is_applied_whole: ClassVar[bool] = True

    self_signed: KubeVirtSelfSignConfiguration = KubeVirtSelfSignConfiguration()
    """Certificates that the control plane issues."""


class KubeVirtSpec(Node, frozen=True, kw_only=True):
    """How the control plane is configured."""

    certificate_rotate_strategy: KubeVirtCertificateRotateStrategy = KubeVirtCertificateRotateStrategy()
    """When the certificates of the control plane are replaced."""
    workload_update_strategy: WorkloadUpdateStrategy = WorkloadUpdateStrategy()
    """How running machines get to the launcher of the control plane that is deployed."""
    image_pull_policy: PullPolicy = ""
    """Pull policy that the control plane's images were deployed with; the deployment sets it, this field records it."""
    configuration: KubeVirtConfiguration = KubeVirtConfiguration()
    """Settings of all machines."""


class KubeVirtStatus(Node, frozen=True, kw_only=True):
    """State of the control plane."""

    phase: str = ""
    """Deploying, Deployed or Deleting."""
    conditions: tuple[Condition, ...] = ()
    """Created, Available, Progressing, Degraded."""
    observed_generation: int = 0
    """Generation of the spec that is in effect."""
    operator_version: str = ""
    """Version of this control plane."""
    target_kube_virt_version: str = ""
    """Version of KubeVirt that the control plane which is being deployed is compatible with."""
    observed_kube_virt_version: str = ""
    """Version of KubeVirt that the deployed control plane is compatible with."""
    default_architecture: str = ""
    """CPU architecture of machines that name none."""
    outdated_virtual_machine_instance_workloads: int | None = None
    """How many running machines are not in the launcher of the control plane that is deployed."""
    last_workload_eviction: Annotated[str, bounded(max_length=64)] = ""
    """When machines were evicted last to get to another launcher."""


class KubeVirt(Object, frozen=True, kw_only=True):
    """The configuration of the control plane, and its state."""

    resource: ClassVar[Resource] = KUBEVIRT

    spec: KubeVirtSpec = KubeVirtSpec()
    """How the control plane is configured."""
    status: KubeVirtStatus = KubeVirtStatus()
    """State of the control plane."""
