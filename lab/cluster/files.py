# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the files that a lab's programs read: certificates, kubeconfigs, configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lab.cluster.certificates import control_plane_requests, ensure_certificates, node_requests
from lab.cluster.control_plane import AUDIT_POLICY, ControlPlane, render_admission
from lab.cluster.kubeconfig import render_kubeconfig, render_webhook_users, write_private
from lab.cluster.node import Node
from lab.paths import State


def write_files(state: State, control_plane: ControlPlane, nodes: Sequence[Node]) -> None:
    """Write missing and changed files. Existing certificates stay."""
    certificates = state.certificates
    requests = control_plane_requests(control_plane.addresses, control_plane.distribution.cluster_domain)
    for node in nodes:
        requests += node_requests(node.name, str(control_plane.addresses.node(node.number)))
    ensure_certificates(certificates, requests)
    server = control_plane.addresses.server

    def kubeconfig(path: Path, client: str) -> None:
        text = render_kubeconfig(name=f"lab-{state.name}", server=server, certificates=certificates, client=client)
        write_private(path, text)

    kubeconfig(state.kubeconfig, "admin")
    for name in ("kube-controller-manager", "kube-scheduler"):
        kubeconfig(control_plane.kubeconfig(name), name)
    write_private(control_plane.audit_policy(), json.dumps(AUDIT_POLICY))
    webhooks = control_plane.kubeconfig("webhooks")
    write_private(webhooks, render_webhook_users(certificates, "front-proxy-client"))
    write_private(control_plane.admission(), json.dumps(render_admission(webhooks, control_plane.distribution)))
    for directory in (state.audit_log.parent, state.shared_volumes, state.etcd):
        directory.mkdir(parents=True, exist_ok=True)
    for node in nodes:
        kubeconfig(node.kubeconfig("kubelet"), f"{node.name}-client")
        kubeconfig(node.kubeconfig("kube-proxy"), "kube-proxy")
        node.paths.volumes.mkdir(parents=True, exist_ok=True)
        for path, text in node.files().items():
            write_private(path, text)
