# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: ASYNC240  (a directory in memory or next to it)
"""Plugin sockets in the kubelet's directory, and the removal of stale ones."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from controlplane.virt_node.device_plugins.device import KVM
from controlplane.virt_node.device_plugins.endpoint import listening
from controlplane.virt_node.device_plugins.plugin import Plugin

PLUGIN = Plugin(KVM, "/private/kvm", is_healthy=True)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(".")


async def test_a_socket_is_removed_when_its_plugin_ends(directory: Path) -> None:
    async with listening(PLUGIN, directory) as (_unused, name):
        assert [path.name for path in directory.iterdir()] == [name]
    assert not [*directory.iterdir()]


async def test_a_successor_listens_beside_its_predecessor(directory: Path) -> None:
    async with listening(PLUGIN, directory) as (_unused, old):
        async with listening(PLUGIN, directory) as (_unused, new):
            assert {entry_path.name for entry_path in directory.iterdir()} == {old, new}
            assert len({old, new}) == 2
        assert [path.name for path in directory.iterdir()] == [old]


@pytest.mark.parametrize("name", ["virtops-kvm-0123abcd.sock", "virtops-kvm.sock"])
async def test_the_socket_of_a_killed_predecessor_is_removed(name: str, directory: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(name)
    async with listening(PLUGIN, directory) as (_unused, ours):
        assert [path.name for path in directory.iterdir()] == [ours]


@pytest.mark.parametrize("name", ["virtops-kvm-0123abcd.sock", "virtops-kvm.sock"])
async def test_the_socket_of_a_busy_plugin_stays(name: str, directory: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting,
    ):
        busy.bind(name)
        busy.listen(0)
        waiting.connect(name)
        async with listening(PLUGIN, directory) as (_unused, ours):
            assert {path.name for path in directory.iterdir()} == {name, ours}


@pytest.mark.parametrize("name", ["kubelet.sock", "kubevirt-kvm.sock", "virtops-tun-0123abcd.sock"])
async def test_sockets_of_other_plugins_stay(name: str, directory: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(name)
    async with listening(PLUGIN, directory):
        pass
    assert [path.name for path in directory.iterdir()] == [name]
