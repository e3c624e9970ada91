# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices of launchers, and their device nodes.

A node's /dev/kvm may have mode 0600, or 0660 for a group without launchers. virt-node does not change it. Instead it
creates a device node with mode 0666 in a directory that only root can enter, and the container runtime copies it
(numbers, mode and owner) into the container. A container without the resource has no such device.
"""

from __future__ import annotations

import logging
import os
import stat
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

NAMESPACE = "devices.kubevirt.io"
COUNT = 1000
"""Devices of each kind; the number of Pods on a node is the lower limit."""

PERMISSIONS = "rw"


@dataclass(frozen=True, slots=True)
class Device:
    """A device that any number of launchers share."""

    name: str
    path: str
    """Path on the node and in the launcher."""

    @property
    def resource(self) -> str:
        return f"{NAMESPACE}/{self.name}"


KVM = Device("kvm", "/dev/kvm")
TUN = Device("tun", "/dev/net/tun")
DEVICES = (KVM, TUN)


def is_present(device: Device, root: str = "/") -> bool:
    """Tell whether the node has the device, as a character device."""
    try:
        return stat.S_ISCHR(os.stat(os.path.join(root, device.path.lstrip("/"))).st_mode)
    except OSError:
        return False


def private_node(device: Device, directory: Path, root: str = "/") -> str:
    """Create a device node of our own; return its path, or the original path if that fails."""
    source = os.path.join(root, device.path.lstrip("/"))
    wanted = os.stat(source)
    node = directory / device.name
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_same_device(node, wanted):
            node.unlink(missing_ok=True)
            os.mknod(node, stat.S_IFCHR | 0o666, wanted.st_rdev)
        node.chmod(0o666)
    except OSError as error:
        log.warning("using the node's own device", extra={"device": device.path, "error": str(error)})
        return device.path
    return str(node)


def _is_same_device(node: Path, wanted: os.stat_result) -> bool:
    try:
        status = node.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == wanted.st_rdev
