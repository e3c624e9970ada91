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
      - The node's container runtime. V(auto) takes CRI-O where its socket C(/run/crio/crio.sock) is, else containerd.
    type: str
    choices: [auto, containerd, cri-o]
    default: auto
  ctr:
    description:
      - containerd's client, with arguments if it needs any, for example V(k3s ctr).
    type: str
    default: ctr
  crictl:
    description:
      - CRI-O's client, with arguments. By itself crictl waits 2 s for an answer; removing an image
        takes a busy node longer.
    type: str
    default: crictl --timeout 2m --runtime-endpoint unix:///run/crio/crio.sock --image-endpoint unix:///run/crio/crio.sock
  importer:
    description:
      - The program that imports archives into CRI-O's storage, skopeo or podman; the one that is there by default.
    type: str
    default: ""
  registry_hosts:
    description:
      - containerd's folder of registry settings on the node. CRI-O has its own in C(/etc/containers).
    type: path
    default: /etc/containerd/certs.d
"""
