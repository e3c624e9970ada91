# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a node, and the device nodes that launchers get."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from controlplane.virt_node.device_plugins.device import KVM, TUN, _is_same_device, is_present, private_node


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    os.mknod(tmp_path / "dev" / "kvm", stat.S_IFCHR | 0o600, os.makedev(10, 232))
    return tmp_path


def test_resources_have_upstreams_names() -> None:
    assert (KVM.resource, TUN.resource) == ("devices.kubevirt.io/kvm", "devices.kubevirt.io/tun")


@pytest.mark.root
def test_a_device_is_present_when_it_is_a_character_device(node: Path) -> None:
    (node / "dev" / "net").mkdir()
    (node / "dev" / "net" / "tun").touch()
    assert is_present(KVM, str(node))
    assert not is_present(TUN, str(node))


@pytest.mark.root
def test_a_launcher_gets_an_open_device_node_and_the_hosts_stays_restricted(node: Path) -> None:
    private = Path(private_node(KVM, node / "private" / "dev", str(node)))
    assert private.stat().st_rdev == os.makedev(10, 232)
    assert stat.S_IMODE(private.stat().st_mode) == 0o666
    assert stat.S_IMODE((node / "dev" / "kvm").stat().st_mode) == 0o600
    assert stat.S_IMODE((node / "private" / "dev").stat().st_mode) == 0o700


@pytest.mark.root
def test_a_file_in_the_way_of_our_device_node_is_replaced(node: Path) -> None:
    (node / "private").mkdir()
    (node / "private" / "kvm").symlink_to("/dev/null")
    path = private_node(KVM, node / "private", str(node))
    assert Path(path).lstat().st_rdev == os.makedev(10, 232)


@pytest.mark.root
def test_the_hosts_device_node_is_the_fallback(node: Path) -> None:
    (node / "private").write_text("in the way")
    assert private_node(KVM, node / "private", str(node)) == "/dev/kvm"


def test_a_device_node_with_another_number_is_not_reused() -> None:
    """The device number may have changed since an earlier run made the device node."""
    assert _is_same_device(Path("/dev/null"), os.stat("/dev/null"))
    assert not _is_same_device(Path("/dev/null"), os.stat("/dev/zero"))
