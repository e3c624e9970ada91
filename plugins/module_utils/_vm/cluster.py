# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the VM modules read and write, bound to one API and one namespace."""

from __future__ import annotations

from .._client.api import Resource
from ..kubevirt_api import names

Path = tuple[str, ...]

LIST_FROM = 4
"""Objects of one namespace from which one list is cheaper than a read each."""


class Kind:
    """A kind that describes machines. machine: where in it the spec of an instance is.

    entries: the option with which a task names several; "" where there is none.
    """

    def __init__(self, name: str, plural: str, machine: Path, entries: str = "") -> None:
        self.name = name
        self.plural = plural
        self.machine = machine
        self.entries = entries

    def resource(self, namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
        """Return the collection of this kind."""
        return Resource(api_version, self.plural, self.name, namespace)

    def inside(self, path: Path) -> Path:
        """Return where this kind has what a VirtualMachine has at a path: another place inside its template's spec."""
        begin = len(VM.machine)
        return (*self.machine, *path[begin:]) if path[:begin] == VM.machine else path


VM = Kind("VirtualMachine", "virtualmachines", ("spec", "template", "spec"), "vms")
VMI = Kind("VirtualMachineInstance", "virtualmachineinstances", ("spec",), "vmis")
REPLICA_SET = Kind("VirtualMachineInstanceReplicaSet", "virtualmachineinstancereplicasets", VM.machine)


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
