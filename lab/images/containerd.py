# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of containerd, on a node and to fill a store. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lab.images.system import PAUSE_IMAGE

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


def containerd_configuration(
    plugins: Sequence[Path],
    runc: str,
    *,
    root: str = "/var/lib/containerd",
    state: str = "/run/containerd",
    socket: str = CONTAINERD_SOCKET,
) -> str:
    """Return containerd's TOML. plugins: the directory of CNI plug-ins.

    Without restrict_oom_score_adj no container starts where root lacks CAP_SYS_RESOURCE; without device_ownership an
    unprivileged container cannot open its devices."""
    return f"""version = 3
root = "{root}"
state = "{state}"
[grpc]
  address = "{socket}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  device_ownership_from_security_context = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = {json.dumps([*map(str, plugins), "/opt/cni/bin"])}
    conf_dir = "/etc/cni/net.d"
"""
