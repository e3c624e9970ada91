# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of virt-handler's scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE
from controlplane.virt_handler import __main__ as virt_handler
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair
from controlplane.virt_handler.settings import Settings
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.kube.late_api import LateApi
from tests.controlplane.virt_handler.builders import NODE as NAME
from tests.controlplane.virt_handler.builders import VMI_UID, pod_object, vmi_object
from tests.controlplane.virt_handler.fakes import (
    FakeApi,
    FakeCache,
    FakeClock,
    FakeLibvirtd,
    FakeNetwork,
    FakeProc,
    LauncherFiles,
    until,
)
from tests.controlplane.virt_handler.node.virt_node import VirtNode
from tests.controlplane.virt_handler.stage import Node
from tests.controlplane.virt_handler.wired import INSTALL_NAMESPACE, POD_KEY, WEB, Stage


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    (tmp_path / "pods").mkdir()
    monkeypatch.chdir(tmp_path)
    vmis = FakeCache()
    node = Node(
        pods=FakeCache(),
        vmis=vmis,
        api=FakeApi(vmis),
        clock=FakeClock(),
        libvirtd=FakeLibvirtd(VMI_UID),
        files=LauncherFiles(tmp_path / "pods"),
        network=FakeNetwork(),
        directory=PodsDirectory(str(tmp_path / "pods")),
        proc=FakeProc(tmp_path / "proc"),
    )
    node.begin()
    await asyncio.sleep(0)
    yield node
    await node.end()
    node.files.close()
    node.directory.close()


@pytest.fixture
async def up(node: Node) -> Node:
    """Return a node whose launcher is prepared and waits for the hand-over."""
    node.api.store(vmi_object("Scheduling"))
    node.pods.put(pod_object(phase="Pending"))
    node.make_launcher()
    await until(lambda: bool(node.network.wanted), "the network")
    return node


@pytest.fixture
async def running(up: Node) -> Node:
    await up.start()
    return up


@pytest.fixture(scope="session")
def pair() -> SelfSignedPair:
    return asyncio.run(make_self_signed_pair(NAME))


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: SelfSignedPair) -> AsyncIterator[Stage]:
    (tmp_path / "pods").mkdir()
    monkeypatch.chdir(tmp_path)
    directory, files, libvirtd = PodsDirectory("pods"), LauncherFiles(tmp_path / "pods"), FakeLibvirtd(VMI_UID)
    virt_node = VirtNode(directory, FakeNetwork(), FakeProc(tmp_path / "proc"))
    settings = Settings(
        node=NAME, namespace=INSTALL_NAMESPACE, port=0, endpoint_port=0, address="127.0.0.1", pod_name="vh-1"
    )
    monkeypatch.setattr(virt_handler, "dial_virt_node", lambda _path: virt_node.dial())
    monkeypatch.setattr(virt_handler, "_connect", libvirtd.connect)
    yield Stage(LateApi(), virt_node, files, libvirtd, settings, pair)
    await virt_node.close()
    files.close()
    directory.close()


@pytest.fixture
def launcher(stage: Stage) -> Stage:
    """Add a launcher Pod and a VMI that grants it the run."""
    stage.api.set(VIRTUAL_MACHINE_INSTANCE, WEB, vmi_object())
    pod = pod_object()
    pod["metadata"]["name"] = POD_KEY.name
    stage.api.set(POD, POD_KEY, pod)
    stage.files.make_directory()
    stage.files.report()
    stage.files.listen()
    return stage
