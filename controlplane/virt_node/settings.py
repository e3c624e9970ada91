# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-node's settings, read from the environment in __main__. All have defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.domain import layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    log_level: str = "INFO"
    pod_uid: str = ""
    """Of this Pod. Without it the directory of Pods is not checked."""
    socket: Path = Path(layout.NODE_SOCKET)
    """Where virt-handler connects; in a directory of the node that both mount."""
    pods_directory: Path = Path("/var/lib/kubelet/pods")
    device_plugins_directory: Path = Path("/var/lib/kubelet/device-plugins")
    devices_directory: Path = Path("/run/virtops/devices")
    """Directory for the device nodes of launchers; mounted at the same path as on the node."""
    capabilities_directory: Path = Path("/capabilities")
    """The capability caches that the DaemonSet's init container created."""
    kvm_probe: Path = Path("/usr/lib/virtops/kvm_probe.py")


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read LOG_LEVEL, POD_UID and the paths."""
    paths = {
        field: Path(environment[name])
        for field, name in (
            ("socket", "NODE_SOCKET"),
            ("pods_directory", "KUBELET_PODS"),
            ("device_plugins_directory", "KUBELET_DEVICE_PLUGINS"),
            ("devices_directory", "DEVICES_DIRECTORY"),
            ("capabilities_directory", "CAPABILITIES_DIRECTORY"),
            ("kvm_probe", "KVM_PROBE"),
        )
        if environment.get(name)
    }
    return Settings(log_level=environment.get("LOG_LEVEL") or "INFO", pod_uid=environment.get("POD_UID", ""), **paths)
