# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the VM modules read and write, and the path of the machine's spec in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.api import Resource
from ..kubevirt_api import names
from .field_path import Path

LIST_THRESHOLD = 4
"""From this number of objects in a namespace on, one list request replaces the reads."""

POOL_TEMPLATE: Path = ("spec", "virtualMachineTemplate")
"""The path of the VirtualMachine in a pool."""


class Kind:
    """A kind that describes machines.

    machine: the path of an instance's spec. list_option: the option that takes several objects (vms, vmis), or "".
    vm: the path of a VirtualMachine, whose spec has a run strategy, or None. templates: the paths of the templates of
    members, outermost first. members: the word for the members of a set in messages;
    "" for a kind that has none. noun: the word for an object of the kind in messages.
    """

    def __init__(
        self,
        name: str,
        plural: str,
        machine: Path,
        list_option: str = "",
        *,
        api_version: str = names.API_VERSION,
        vm: Path | None = None,
        templates: tuple[Path, ...] = (("spec", "template"),),
        members: str = "",
        noun: str = "machine",
    ) -> None:
        self.name = name
        self.plural = plural
        self.machine = machine
        self.list_option = list_option
        self.api_version = api_version
        self.vm = vm
        self.templates = templates
        self.members = members
        self.noun = noun

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.api_version.partition("/")[0]

    def resource(self, namespace: str | None, api_version: str = "") -> Resource:
        """Return the collection of this kind."""
        return Resource(api_version or self.api_version, self.plural, self.name, namespace)

    def inside(self, path: Path) -> Path:
        """Translate a path of a VirtualMachine into a path of this kind."""
        template = VM.machine[:-1]
        if path[: len(template)] != template:
            return (*(self.vm or ()), *path)
        rest = path[len(template) :]
        return (*self.machine, *rest[1:]) if rest[:1] == ("spec",) else (*self.machine[:-1], *rest)


VM = Kind("VirtualMachine", "virtualmachines", ("spec", "template", "spec"), "vms", vm=())
VMI = Kind("VirtualMachineInstance", "virtualmachineinstances", ("spec",), "vmis", templates=(), noun="instance")
REPLICA_SET = Kind(
    "VirtualMachineInstanceReplicaSet",
    "virtualmachineinstancereplicasets",
    VM.machine,
    members="instances",
    noun="replica set",
)
POOL = Kind(
    "VirtualMachinePool",
    "virtualmachinepools",
    (*POOL_TEMPLATE, *VM.machine),
    api_version=names.POOL_API_VERSION,
    vm=POOL_TEMPLATE,
    templates=(POOL_TEMPLATE, (*POOL_TEMPLATE, "spec", "template")),
    members="machines",
    noun="pool",
)
SETS = {kind.name: kind for kind in (REPLICA_SET, POOL)}
"""Kinds that own several equal members."""
MEMBERS = tuple(kind.members for kind in SETS.values())
MODULES = {
    VM.name: "kubevirt_vm",
    VMI.name: "kubevirt_vmi",
    REPLICA_SET.name: "kubevirt_replicaset",
    POOL.name: "kubevirt_pool",
}
"""The module for each kind."""


def virtual_machines(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachine."""
    return VM.resource(namespace, api_version)


def instances(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachineInstance."""
    return VMI.resource(namespace, api_version)


def operations(kind: Kind, namespace: str) -> Resource:
    """Return a kind of the aggregated API: VM to start, stop and restart, VMI to pause, reset etc."""
    return kind.resource(namespace, f"{names.SUBRESOURCES_GROUP}/{names.VERSION}")


def pods(namespace: str) -> Resource:
    """Return the kind Pod."""
    return Resource("v1", "pods", "Pod", namespace)


def launchers(instance: Mapping[str, Any]) -> str:
    """Return the label selector of the Pods of an instance."""
    return f"{names.CREATED_BY}={instance['metadata'].get('uid')}"


def nodes() -> Resource:
    """Return the kind Node."""
    return Resource("v1", "nodes", "Node", None)


def events(namespace: str) -> Resource:
    """Return the kind Event."""
    return Resource("v1", "events", "Event", namespace)
