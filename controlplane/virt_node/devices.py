# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices that this node offers to launchers: probe KVM, serve the device plugins, keep the node's state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from controlplane.links.node.messages import HostCpu, KvmFinding, NodeState
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.virt_node.device_plugins.device import DEVICES, KVM, is_present, private_node
from controlplane.virt_node.device_plugins.plugin import Plugin
from controlplane.virt_node.device_plugins.serve import serve
from controlplane.virt_node.inotify import Inotify
from controlplane.virt_node.kvm import probe

log = logging.getLogger(__name__)


async def record_registration(node_state: CurrentNodeState, resource: str, *, is_registered: bool) -> None:
    """Record in the node's state whether a resource is registered with the kubelet."""
    state = node_state.state or NodeState()
    names = {*state.registered} - {resource}
    if is_registered:
        names.add(resource)
    await node_state.update(msgspec.structs.replace(state, registered=tuple(sorted(names))))


async def serve_devices(
    node_state: CurrentNodeState,
    *,
    plugins: Path,
    devices: Path,
    kvm_probe: Path,
    inotify: Inotify,
    cpu: Callable[[bool], HostCpu | None],
) -> None:
    """Probe KVM once, then serve a plugin for each device that the node has, until cancelled.

    plugins: the kubelet's directory. devices: the directory for our own device nodes. cpu: returns the node's CPU as
    guests see it, by whether they have KVM.
    """
    kvm = await _probe(kvm_probe)
    present = [device for device in DEVICES if is_present(device)]
    usable = [device for device in present if device is not KVM or kvm.is_usable]
    resources, offered = tuple(device.resource for device in present), tuple(device.resource for device in usable)
    await node_state.update(NodeState(kvm, resources, offered, cpu=cpu(kvm.is_usable)))
    async with asyncio.TaskGroup() as group:
        for device in present:
            plugin = Plugin(device, private_node(device, devices), is_healthy=device in usable)
            group.create_task(serve(plugin, plugins, inotify, partial(record_registration, node_state)))


async def _probe(program: Path) -> KvmFinding:
    if not is_present(KVM):
        return KvmFinding(is_usable=False, reason="the node has no /dev/kvm")
    finding = await probe(str(program))
    log.info("KVM probed", extra={"usable": finding.is_usable, "because": finding.reason})
    return finding
