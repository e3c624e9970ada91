# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the VM modules read and write, bound to one API and one namespace."""

from __future__ import annotations

from .._client.api import Resource
from ..kubevirt_api import names
from .keyed_lists import POOLED

Path = tuple[str, ...]

LIST_FROM = 4
"""Objects of one namespace from which one list is cheaper than a read each."""


class Kind:
    """A kind that describes machines. machine: where in it the spec of an instance is.

    entries: the option with which a task names several; "" where there is none. vm: where it has what a VirtualMachine
    is, with a run strategy; None where it has none. templates: where it says what is made from it, the outermost first.
    members: what a kind that keeps several alike keeps, in a word; "" of any other.
    """

    def __init__(
        self,
        name: str,
        plural: str,
        machine: Path,
        entries: str = "",
        *,
        api_version: str = names.API_VERSION,
        vm: Path | None = None,
        templates: tuple[Path, ...] = (("spec", "template"),),
        members: str = "",
    ) -> None:
        self.name = name
        self.plural = plural
        self.machine = machine
        self.entries = entries
        self.api_version = api_version
        self.vm = vm
        self.templates = templates
        self.members = members

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.api_version.partition("/")[0]

    def resource(self, namespace: str | None, api_version: str = "") -> Resource:
        """Return the collection of this kind."""
        return Resource(api_version or self.api_version, self.plural, self.name, namespace)

    def inside(self, path: Path) -> Path:
        """Return where this kind has what a VirtualMachine has at a path."""
        template = VM.machine[:-1]
        if path[: len(template)] != template:
            return (*(self.vm or ()), *path)
        rest = path[len(template) :]
        return (*self.machine, *rest[1:]) if rest[:1] == ("spec",) else (*self.machine[:-1], *rest)


VM = Kind("VirtualMachine", "virtualmachines", ("spec", "template", "spec"), "vms", vm=())
VMI = Kind("VirtualMachineInstance", "virtualmachineinstances", ("spec",), "vmis", templates=())
REPLICA_SET = Kind(
    "VirtualMachineInstanceReplicaSet", "virtualmachineinstancereplicasets", VM.machine, members="instances"
)
POOL = Kind(
    "VirtualMachinePool",
    "virtualmachinepools",
    (*POOLED, *VM.machine),
    api_version=names.POOL_API_VERSION,
    vm=POOLED,
    templates=(POOLED, (*POOLED, "spec", "template")),
    members="machines",
)
SETS = {kind.name: kind for kind in (REPLICA_SET, POOL)}
"""Those that keep several alike."""
MEMBERS = tuple(kind.members for kind in SETS.values())
MODULES = {
    VM.name: "kubevirt_vm",
    VMI.name: "kubevirt_vmi",
    REPLICA_SET.name: "kubevirt_replicaset",
    POOL.name: "kubevirt_pool",
}
"""By which objects of these kinds are changed."""


def virtual_machines(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachine."""
    return VM.resource(namespace, api_version)


def instances(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachineInstance."""
    return VMI.resource(namespace, api_version)


def operations(kind: Kind, namespace: str) -> Resource:
    """Return a kind of the aggregated API: VM to start, stop and restart, VMI to pause, reset and so on."""
    return kind.resource(namespace, f"{names.SUBRESOURCES_GROUP}/{names.VERSION}")


def pods(namespace: str) -> Resource:
    """Return the kind Pod."""
    return Resource("v1", "pods", "Pod", namespace)


def events(namespace: str) -> Resource:
    """Return the kind Event."""
    return Resource("v1", "events", "Event", namespace)
