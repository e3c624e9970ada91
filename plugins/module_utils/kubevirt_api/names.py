# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the API: groups, labels, annotations, finalizers. States are in files of their own."""

from __future__ import annotations

GROUP = "kubevirt.io"
VERSION = "v1"
API_VERSION = "kubevirt.io/v1"
OLD_VERSION = "v1alpha3"
"""Served beside VERSION, deprecated."""
SUBRESOURCES_GROUP = "subresources.kubevirt.io"
STREAM_PROTOCOL = "plain.kubevirt.io"
"""The WebSocket subprotocol of consoles, screens and ports."""
POOL_VERSION = "v1beta1"
POOL_API_VERSION = "pool.kubevirt.io/v1beta1"
OLD_POOL_VERSION = "v1alpha1"
"""Served beside POOL_VERSION, deprecated."""
POLICY_VERSION = "v1alpha1"

# Labels
ROLE = "kubevirt.io"
"""On every Pod and component: its role, e.g. LAUNCHER_ROLE."""
LAUNCHER_ROLE = "virt-launcher"
CREATED_BY = "kubevirt.io/created-by"
"""UID of the VirtualMachineInstance, on its launcher Pod."""
NODE_NAME = "kubevirt.io/nodeName"
"""On a VirtualMachineInstance: the node whose virt-handler is responsible for it."""
VMI_ID = "vmi.kubevirt.io/id"
"""On launcher Pods, for Services: the VirtualMachineInstance's name, shortened to a label value."""
VM_NAME = "vm.kubevirt.io/name"
"""On launcher Pods: the guest's host name. Deprecated."""
SCHEDULABLE = "kubevirt.io/schedulable"
"""On Nodes: "true" where machines can run."""
CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"
"""On the nodes of the cluster's control plane."""
RESERVING_TAINTS = (CONTROL_PLANE_ROLE, "node-role.kubernetes.io/master")
"""Keys of the taints that reserve such a node; OpenShift has the second."""
QUARANTINED = "virtops.kubevirt/quarantined"
"""On Nodes: the node is in quarantine. A time such as 20260131T120000Z: set by virt-controller, valid until then."""

MIGRATION_JOB = "kubevirt.io/migrationJobUID"
"""On the target Pod of a migration: UID of the VirtualMachineInstanceMigration."""
MIGRATION_TARGET_NODE = "kubevirt.io/migrationTargetNodeName"
"""On a VirtualMachineInstance while it migrates: the target node."""
VMI_NAME = "kubevirt.io/vmi-name"
"""On a VirtualMachineInstanceMigration: the instance that it migrates."""
OUTDATED_LAUNCHER = "kubevirt.io/outdatedLauncherImage"
"""On a VirtualMachineInstance whose launcher has another image than the deployed control plane names."""
CONTROL_PLANE_IMAGE = "kubevirt.io/control-plane-image"
"""On a Node: the image of its virt-handler, as the role names it."""
POOL_REVISION = "kubevirt.io/vm-pool-revision-name"
"""On a pool's VirtualMachines and, by their templates, on instances: the revision of the pool's template."""

RESERVED_LABELS = (
    CREATED_BY,
    MIGRATION_JOB,
    NODE_NAME,
    MIGRATION_TARGET_NODE,
    SCHEDULABLE,
    "kubevirt.io/install-strategy",
)
"""Labels of a VirtualMachineInstance that only the control plane may set."""

# Annotations
DOMAIN = "kubevirt.io/domain"
"""On launcher Pods: name of the VirtualMachineInstance."""
EXCLUDED_NODES = "kubevirt.io/kept-from-nodes"
"""On launcher Pods: the nodes that were in quarantine when the Pod was created, joined by commas."""
VM_GENERATION = "kubevirt.io/vm-generation"
"""On a VirtualMachineInstance: generation of the VM that it was created from."""
TEMPLATE_HASH = "virtops.kubevirt/template-hash"
"""On a VirtualMachineInstance: hash of the stored VM template that it was created from."""
FIXED_TEMPLATE_HASH = "virtops.kubevirt/fixed-template-hash"
"""On a VirtualMachineInstance: hash of the part of the VM template that cannot change while it runs."""
TEMPLATE_METADATA_HASH = "virtops.kubevirt/template-metadata-hash"
"""On a VirtualMachineInstance: hashes of the labels and annotations of the VM template that act on it or its Pod."""
CPUS_ADDED = "virtops.kubevirt/cpus-added"
"""On a VirtualMachineInstance that got virtual CPUs after its creation: how many the last change added."""
POOL_TEMPLATE = "virtops.kubevirt/pool-template-hash"
"""On the template of a pool's VirtualMachine, and so on its instance: hashes of the pool's templates for instances and
DataVolumes."""

DECLARED_ITEMS = "virtops.kubevirt/declared-items"
"""On a VirtualMachine: the list items that Ansible declared, as a field set without values."""

FURTHER_ATTEMPTS = "virtops.kubevirt/further-attempts"
"""On a VirtualMachineInstance: how many further attempts its run gets if a node cannot begin it. On the KubeVirt
object: the default of all machines."""
RUN_TIMEOUT = "virtops.kubevirt/run-timeout-seconds"
"""On a VirtualMachineInstance: timeout for its launcher after its Pod has a node; 0 means no timeout. On the KubeVirt
object: the default of all machines."""
CONTAINER_DISK_LIMIT = "virtops.kubevirt/container-disk-limit"
"""On the KubeVirt object: the largest disk that a containerDisk may be, as a quantity."""
QUARANTINE = "virtops.kubevirt/quarantine-seconds"
"""On the KubeVirt object: how long a node is in quarantine; 0 means never."""
CONSOLE_ORIGINS = "virtops.kubevirt/console-origins"
"""On the KubeVirt object: origins of web pages that may open streams to guests, separated by spaces."""
MIGRATION_JOB_NAME = "kubevirt.io/migrationJobName"
"""On the target Pod of a migration: name of the VirtualMachineInstanceMigration."""
VCPUS = "virtops.kubevirt/vcpus"
"""On launcher Pods: the number of virtual CPUs that the Pod was created for."""
GUEST_MEMORY = "virtops.kubevirt/guest-memory"
"""On launcher Pods of guests with memory hotplug: the bytes of memory that the Pod was created for."""
EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
"""Annotation of a launcher Pod whose guest is to leave its node: a descheduler counts it as evicted already."""
EVICTED_BY = "kubevirt"
"""Its value, as upstream's."""
EVACUATION_MIGRATION = "kubevirt.io/evacuationMigration"
"""On a VirtualMachineInstanceMigration of virt-controller: the source node."""
WORKLOAD_UPDATE_MIGRATION = "kubevirt.io/workloadUpdateMigration"
"""On a VirtualMachineInstanceMigration of virt-controller that brings an instance up to date."""
WORKLOAD_UPDATE_REASON = "virtops.kubevirt/workload-update-reason"
"""The reason for such a migration in words. A pending migration whose reason has changed is created again."""

RESERVED_ANNOTATIONS = (VM_GENERATION, TEMPLATE_HASH, FIXED_TEMPLATE_HASH, TEMPLATE_METADATA_HASH, CPUS_ADDED)
"""Annotations of a VirtualMachineInstance that only the control plane may set."""

# Devices that launchers request from their node
KVM_DEVICE = "devices.kubevirt.io/kvm"
TUN_DEVICE = "devices.kubevirt.io/tun"

# Finalizers
VMI_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
"""On a VirtualMachineInstance until all of its Pods are gone."""
VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
"""On a VirtualMachine until its instance is gone, and on its instance until the end was recorded."""

MIGRATION_FINALIZER = "kubevirt.io/migrationJobFinalize"
"""On a VirtualMachineInstanceMigration until it is over."""

# Service accounts, in the control plane's namespace
API_ACCOUNT = "kubevirt-apiserver"
CONTROLLER_ACCOUNT = "kubevirt-controller"
HANDLER_ACCOUNT = "kubevirt-handler"
CONTROL_PLANE_NAMESPACE = "kubevirt"
"""The default namespace of the control plane."""
