# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of how modules that run on a node speak to its container runtime."""

from __future__ import annotations


class ModuleDocFragment:
    """The options of runtime_spec."""

    DOCUMENTATION = r"""
options:
  runtime:
    description:
      - The node's container runtime. V(auto) is CRI-O if its socket C(/run/crio/crio.sock) exists, else containerd.
    type: str
    choices: [auto, containerd, cri-o]
    default: auto
  ctr:
    description:
      - containerd's client, optionally with arguments, such as V(k3s ctr).
    type: str
    default: ctr
  crictl:
    description:
      - CRI-O's client, with arguments. Without one crictl times out after 2 s, which is too short to remove an image
        on a busy node.
    type: str
    default: crictl --timeout 2m --runtime-endpoint unix:///run/crio/crio.sock --image-endpoint unix:///run/crio/crio.sock
  importer:
    description:
      - The program that imports archives into CRI-O's storage, skopeo or podman; by default the installed one.
    type: str
    default: ""
  registry_hosts:
    description:
      - containerd's directory of registry settings on the node. CRI-O reads C(/etc/containers).
    type: path
    default: /etc/containerd/certs.d
"""
