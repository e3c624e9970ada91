# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strings that identify things in the API: groups, labels, annotations, finalizers. No states; those have own files."""

from __future__ import annotations

GROUP = "kubevirt.io"
VERSION = "v1"
API_VERSION = "kubevirt.io/v1"
OLD_VERSION = "v1alpha3"
"""Served beside VERSION, deprecated."""
SUBRESOURCES_GROUP = "subresources.kubevirt.io"
POOL_VERSION = "v1beta1"
POOL_API_VERSION = "pool.kubevirt.io/v1beta1"
OLD_POOL_VERSION = "v1alpha1"
"""Served beside POOL_VERSION, deprecated."""
POLICY_VERSION = "v1alpha1"

# Labels
ROLE = "kubevirt.io"
"""On every Pod and component: what it is, e.g. LAUNCHER_ROLE."""
LAUNCHER_ROLE = "virt-launcher"
CREATED_BY = "kubevirt.io/created-by"
"""UID of the VirtualMachineInstance, on its launcher Pod."""
NODE_NAME = "kubevirt.io/nodeName"
"""Node that a VirtualMachineInstance was handed to."""
VMI_ID = "vmi.kubevirt.io/id"
"""On launcher Pods, for Services: the VirtualMachineInstance's name, shortened to a label value."""
VM_NAME = "vm.kubevirt.io/name"
"""On launcher Pods: the guest's host name. Deprecated."""
SCHEDULABLE = "kubevirt.io/schedulable"
"""On Nodes: "true" where machines can run."""
QUARANTINED = "virtops.kubevirt/quarantined"
"""On Nodes: no machine is sent there. A time of the form 20260131T120000Z: virt-controller's own mark, until then."""

MIGRATION_JOB = "kubevirt.io/migrationJobUID"
"""On the launcher Pod that a migration goes to: UID of the VirtualMachineInstanceMigration."""
MIGRATION_TARGET_NODE = "kubevirt.io/migrationTargetNodeName"
"""On a VirtualMachineInstance while it migrates: the node that it goes to."""
VMI_NAME = "kubevirt.io/vmi-name"
"""On a VirtualMachineInstanceMigration: the instance that it moves."""
OUTDATED_LAUNCHER = "kubevirt.io/outdatedLauncherImage"
"""On a VirtualMachineInstance whose launcher is not that of the control plane that is deployed."""
CONTROL_PLANE_IMAGE = "kubevirt.io/control-plane-image"
"""On a Node: the image of the virt-handler that serves it, as the role names it."""
POOL_REVISION = "kubevirt.io/vm-pool-revision-name"
"""On a pool's VirtualMachines and, by their templates, on instances: what template they were made from."""

RESERVED_LABELS = (
    CREATED_BY,
    MIGRATION_JOB,
    NODE_NAME,
    MIGRATION_TARGET_NODE,
    SCHEDULABLE,
    "kubevirt.io/install-strategy",
)
"""Labels of a VirtualMachineInstance that only the control plane sets."""

# Annotations
DOMAIN = "kubevirt.io/domain"
"""On launcher Pods: name of the VirtualMachineInstance."""
EXCLUDED_NODES = "kubevirt.io/kept-from-nodes"
"""On launcher Pods: the nodes that were quarantined when it was made, joined by commas."""
VM_GENERATION = "kubevirt.io/vm-generation"
"""On a VirtualMachineInstance: generation of the VM that it was made from."""
TEMPLATE_HASH = "virtops.kubevirt/template-hash"
"""On a VirtualMachineInstance: hash of the VM's template that it was made from, as it was stored."""
FIXED_TEMPLATE_HASH = "virtops.kubevirt/fixed-template-hash"
"""On a VirtualMachineInstance: hash of that part of the VM's template which does not change while it runs."""
CPUS_ADDED = "virtops.kubevirt/cpus-added"
"""On a VirtualMachineInstance: that its spec has got virtual CPUs since it was created; how many it got last."""
POOL_TEMPLATE = "virtops.kubevirt/pool-template-hash"
"""On the template of a pool's VirtualMachine, and so on its instance: hashes of the pool's template for instances and
of those of its DataVolumes."""

DECLARED_ITEMS = "virtops.kubevirt/declared-items"
"""On a VirtualMachine: what Ansible declared of its lists, as a field set without values."""

FURTHER_ATTEMPTS = "virtops.kubevirt/further-attempts"
"""On a VirtualMachineInstance: how often its run is tried again where a node cannot begin it."""
RUN_TIMEOUT = "virtops.kubevirt/run-timeout-seconds"
"""On a VirtualMachineInstance: how long its launcher may take to come up once its Pod has a node; 0 is no bound."""
MIGRATION_JOB_NAME = "kubevirt.io/migrationJobName"
"""On the launcher Pod that a migration goes to: name of the VirtualMachineInstanceMigration."""
VCPUS = "virtops.kubevirt/vcpus"
"""On launcher Pods: for how many virtual CPUs it was made."""
GUEST_MEMORY = "virtops.kubevirt/guest-memory"
"""On launcher Pods of guests that can get memory while they run: for how many bytes of it it was made."""
EVACUATION_MIGRATION = "kubevirt.io/evacuationMigration"
"""On a VirtualMachineInstanceMigration that virt-controller made: the node that is left."""
WORKLOAD_UPDATE_MIGRATION = "kubevirt.io/workloadUpdateMigration"
"""On a VirtualMachineInstanceMigration that virt-controller made to bring an instance to what it is to be."""
WORKLOAD_UPDATE_REASON = "virtops.kubevirt/workload-update-reason"
"""Beside it: why, in words. Where that is another one by now, what has not begun is made anew."""

RESERVED_ANNOTATIONS = (VM_GENERATION, TEMPLATE_HASH, FIXED_TEMPLATE_HASH, CPUS_ADDED)
"""Annotations of a VirtualMachineInstance that only the control plane sets."""

# Devices that launchers ask their node for
KVM_DEVICE = "devices.kubevirt.io/kvm"
TUN_DEVICE = "devices.kubevirt.io/tun"

# Finalizers
VMI_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
"""On a VirtualMachineInstance until none of its Pods exists."""
VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
"""On a VirtualMachine until its instance is gone, and on its instance until the end was recorded."""

MIGRATION_FINALIZER = "kubevirt.io/migrationJobFinalize"
"""On a VirtualMachineInstanceMigration until it is over."""

# Service accounts, in the control plane's namespace
API_ACCOUNT = "kubevirt-apiserver"
CONTROLLER_ACCOUNT = "kubevirt-controller"
HANDLER_ACCOUNT = "kubevirt-handler"
CONTROL_PLANE_NAMESPACE = "kubevirt"
"""Where the control plane lives unless the operator chose otherwise."""
