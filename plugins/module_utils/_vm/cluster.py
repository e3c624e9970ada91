# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the VM modules read and write, bound to one API and one namespace."""

from __future__ import annotations

from .._client.api import Resource
from ..kubevirt_api import names


def virtual_machines(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachine."""
    return Resource(api_version, "virtualmachines", "VirtualMachine", namespace)


def instances(namespace: str | None, api_version: str = names.API_VERSION) -> Resource:
    """Return the kind VirtualMachineInstance."""
    return Resource(api_version, "virtualmachineinstances", "VirtualMachineInstance", namespace)


def operations(namespace: str) -> Resource:
    """Return the VirtualMachine of the aggregated API: start, stop, restart."""
    return Resource(f"{names.SUBRESOURCES_GROUP}/{names.VERSION}", "virtualmachines", "VirtualMachine", namespace)


def pods(namespace: str) -> Resource:
    """Return the kind Pod."""
    return Resource("v1", "pods", "Pod", namespace)


def events(namespace: str) -> Resource:
    """Return the kind Event."""
    return Resource("v1", "events", "Event", namespace)
