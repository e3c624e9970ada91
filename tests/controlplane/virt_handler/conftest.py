# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of virt-handler's stories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.virt_node.launcher_dir import PodsDirectory
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
from tests.controlplane.virt_handler.stage import Node


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    (tmp_path / "pods").mkdir()
    monkeypatch.chdir(tmp_path)
    vmis = FakeCache()
    made = Node(
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
    made.begin()
    await asyncio.sleep(0)
    yield made
    await made.end()
    made.files.close()
    made.directory.close()


@pytest.fixture
async def up(node: Node) -> Node:
    """A node whose launcher is prepared and waits."""
    node.api.store(vmi_object("Scheduling"))
    node.pods.put(pod_object(phase="Pending"))
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.network.wanted), "the network")
    return node


@pytest.fixture
async def running(up: Node) -> Node:
    await up.start()
    return up
