# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this node offers to launchers: probe KVM, serve the device plugins, and keep what is told of it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path

import msgspec

from controlplane.links.node.messages import HostCpu, KvmFinding, NodeState
from controlplane.links.node.offer import Offer
from controlplane.virt_node.device_plugins.device import DEVICES, KVM, is_present, private_node
from controlplane.virt_node.device_plugins.plugin import Plugin
from controlplane.virt_node.device_plugins.serve import serve
from controlplane.virt_node.inotify import Inotify
from controlplane.virt_node.kvm import probe

log = logging.getLogger(__name__)


async def note_registered(offer: Offer, resource: str, *, is_registered: bool) -> None:
    """Take down that the kubelet knows a resource, or does not know it any more."""
    state = offer.state or NodeState()
    names = {*state.registered} - {resource}
    if is_registered:
        names.add(resource)
    await offer.become(msgspec.structs.replace(state, registered=tuple(sorted(names))))


async def offer_devices(
    offer: Offer, *, plugins: Path, devices: Path, kvm_probe: Path, inotify: Inotify, cpu: HostCpu | None = None
) -> None:
    """Probe KVM once, then serve a plugin for each device that the node has, until cancelled.

    plugins: the kubelet's directory; devices: where our own device nodes are made. cpu: of guests that use KVM.
    """
    kvm = await _probe(kvm_probe)
    present = [one for one in DEVICES if is_present(one)]
    usable = [one for one in present if one is not KVM or kvm.is_usable]
    resources, offered = tuple(one.resource for one in present), tuple(one.resource for one in usable)
    await offer.become(NodeState(kvm, resources, offered, cpu=cpu if kvm.is_usable else None))
    async with asyncio.TaskGroup() as group:
        for device in present:
            plugin = Plugin(device, private_node(device, devices), is_healthy=device in usable)
            group.create_task(serve(plugin, plugins, inotify, partial(note_registered, offer)))


async def _probe(program: Path) -> KvmFinding:
    if not is_present(KVM):
        return KvmFinding(is_usable=False, reason="the node has no /dev/kvm")
    found = await probe(str(program))
    log.info("KVM probed", extra={"usable": found.is_usable, "because": found.reason})
    return found
