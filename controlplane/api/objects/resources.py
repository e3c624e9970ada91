# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of objects, kinds as API resources, and the resources that our components use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Key(NamedTuple):
    """Which object of a kind. namespace is "" for cluster-wide kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it, e.g. Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


VIRTUAL_MACHINE = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
VIRTUAL_MACHINE_INSTANCE = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
VIRTUAL_MACHINE_INSTANCE_REPLICA_SET = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet"
)
VIRTUAL_MACHINE_INSTANCE_MIGRATION = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)
VIRTUAL_MACHINE_POOL = Resource("pool.kubevirt.io", "v1beta1", "virtualmachinepools", "VirtualMachinePool")
MIGRATION_POLICY = Resource(
    "migrations.kubevirt.io", "v1alpha1", "migrationpolicies", "MigrationPolicy", namespaced=False
)
KUBEVIRT = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
POD = Resource("", "v1", "pods", "Pod")
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)
SECRET = Resource("", "v1", "secrets", "Secret")
EVENT = Resource("", "v1", "events", "Event")
PERSISTENT_VOLUME_CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DATA_VOLUME = Resource("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
CUSTOM_RESOURCE_DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
CONTROLLER_REVISION = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")
API_SERVICE = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
