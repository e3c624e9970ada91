# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reported state of a node's devices."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.links.node.messages import HostCpu, KvmFinding, NodeState
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.virt_node import devices as offer_module
from controlplane.virt_node.device_plugins.device import KVM, TUN, Device
from controlplane.virt_node.devices import record_registration, serve_devices
from controlplane.virt_node.inotify import Inotify


async def test_a_second_registration_is_not_reported_again() -> None:
    node_state = CurrentNodeState(NodeState())
    state = await node_state.wait_for_other_than(None)
    waiting = asyncio.create_task(node_state.wait_for_other_than(state))
    await asyncio.sleep(0)
    await record_registration(node_state, "a/b", is_registered=True)
    await record_registration(node_state, "a/b", is_registered=True)
    assert (await waiting).registered == ("a/b",)


async def test_a_resource_that_the_kubelet_dropped_is_reported_as_not_registered() -> None:
    node_state = CurrentNodeState(NodeState())
    for resource in ("b/c", "a/b"):
        await record_registration(node_state, resource, is_registered=True)
    state = await node_state.wait_for_other_than(None)
    assert state.registered == ("a/b", "b/c")
    await record_registration(node_state, "a/b", is_registered=False)
    assert (await node_state.wait_for_other_than(state)).registered == ("b/c",)


@pytest.mark.parametrize("is_usable", [True, False])
async def test_an_unusable_device_is_present_and_not_usable(
    is_usable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probe(_program: str) -> KvmFinding:
        return KvmFinding(is_usable, "" if is_usable else "it hangs")

    served: dict[str, bool] = {}

    def plugin(device: Device, _path: str, *, is_healthy: bool) -> tuple[str, bool]:
        return device.resource, is_healthy

    async def serve(made: tuple[str, bool], *_unused: object) -> None:
        served[made[0]] = made[1]

    def is_present(device: Device) -> bool:
        return device in (KVM, TUN)

    monkeypatch.setattr(offer_module, "probe", probe)
    monkeypatch.setattr(offer_module, "serve", serve)
    monkeypatch.setattr(offer_module, "Plugin", plugin)
    monkeypatch.setattr(offer_module, "is_present", is_present)
    monkeypatch.setattr(offer_module, "private_node", lambda device, _directory: device.path)
    node_state, inotify = CurrentNodeState(NodeState()), Inotify()
    with suppress(asyncio.CancelledError):
        await serve_devices(
            node_state,
            plugins=tmp_path,
            devices=tmp_path,
            kvm_probe=tmp_path,
            inotify=inotify,
            cpu=lambda with_kvm: HostCpu("EPYC" if with_kvm else ""),
        )
    inotify.close()
    both = (KVM.resource, TUN.resource)
    state = await node_state.wait_for_other_than(None)
    assert (state.present, state.usable) == (both, both if is_usable else (TUN.resource,))
    assert state.kvm is not None
    assert state.kvm.reason == ("" if is_usable else "it hangs")
    assert state.cpu == HostCpu("EPYC" if is_usable else "")
    assert served == {KVM.resource: is_usable, TUN.resource: True}
    assert isinstance(state, NodeState)
