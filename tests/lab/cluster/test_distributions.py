# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a lab that is like a distribution get its settings."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from lab.cluster.certificates import control_plane_requests
from lab.cluster.control_plane import ControlPlane, render_admission
from lab.cluster.distributions import DISTRIBUTIONS
from lab.cluster.manifests import base_objects
from lab.cluster.node import Node
from lab.machines.addresses import Addresses
from lab.paths import State
from lab.programs.ensure import Programs

STATE, PLAN = State(name="t"), Addresses(index=0)
PROGRAMS = Programs(etcd_directory=Path("/c/etcd"), node_directory=Path("/c/node"), kube_directory=Path("/c/kube"))
CONTROL_PLANE, MASTER = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"
ROWS = {
    "": ("/var/lib/kubelet", "/run/containerd/containerd.sock", "cluster.local", "privileged", (), None),
    "kubeadm": (
        *("/var/lib/kubelet", "/run/containerd/containerd.sock", "cluster.local", "privileged"),
        *((CONTROL_PLANE,), CONTROL_PLANE),
    ),
    "k3s": (
        *("/var/lib/kubelet", "/run/k3s/containerd/containerd.sock", "k3s.example", "privileged"),
        *((CONTROL_PLANE,), None),
    ),
    "k0s": ("/var/lib/k0s/kubelet", "/run/k0s/containerd.sock", "cluster.local", "privileged", (), None),
    "openshift": (
        *("/var/lib/kubelet", "/run/crio/crio.sock", "cluster.local", "restricted"),
        *((CONTROL_PLANE, MASTER), MASTER),
    ),
}


def a_node(like: str, number: int = 1) -> Node:
    settings = {"runc": "/usr/sbin/runc", "distribution": DISTRIBUTIONS[like]}
    return Node(state=STATE, addresses=PLAN, programs=PROGRAMS, number=number, **settings)  # type: ignore[arg-type]


def test_each_distribution_has_a_row() -> None:
    assert ROWS.keys() == DISTRIBUTIONS.keys()


@pytest.mark.parametrize("like", ROWS)
def test_a_node_has_the_settings_of_its_distribution(like: str) -> None:
    root, socket, domain, _level, roles, taint = ROWS[like]
    node = a_node(like)
    kubelet = json.loads(node.files()[node.paths.etc / "kubelet.yaml"])
    containerd = tomllib.loads(node.files()[node.paths.etc / "containerd.toml"])

    assert f"--root-dir={root}" in node.kubelet().argv
    assert {root, "/var/lib/kubelet"} <= {target for _source, target in node.binds()}
    assert kubelet["containerRuntimeEndpoint"] == f"unix://{socket}"
    assert containerd["grpc"]["address"] == socket
    assert socket in node.containerd().remove
    assert kubelet["clusterDomain"] == domain
    assert kubelet["registerWithTaints"] == ([{"key": taint, "effect": "NoSchedule"}] if taint else [])
    assert DISTRIBUTIONS[like].node_labels(1) == dict.fromkeys(roles, "")


@pytest.mark.parametrize("like", ROWS)
def test_only_the_first_node_is_of_the_control_plane(like: str) -> None:
    node = a_node(like, number=2)
    assert json.loads(node.files()[node.paths.etc / "kubelet.yaml"])["registerWithTaints"] == []
    assert DISTRIBUTIONS[like].node_labels(2) == {}


@pytest.mark.parametrize("like", ROWS)
def test_the_control_plane_has_the_settings_of_its_distribution(like: str) -> None:
    _root, _socket, domain, level, _roles, _taint = ROWS[like]
    distribution = DISTRIBUTIONS[like]
    control_plane = ControlPlane(
        state=STATE, addresses=PLAN, programs=PROGRAMS, node_grace_seconds=8, distribution=distribution
    )
    plugins = {item["name"]: item["configuration"] for item in render_admission(Path("/k"), distribution)["plugins"]}
    (dns,) = [item for _path, item in base_objects(domain) if item["kind"] == "ConfigMap"]

    assert plugins["PodSecurity"]["defaults"] == {"enforce": level, "audit": level, "warn": level}
    assert f"--service-account-issuer=https://kubernetes.default.svc.{domain}" in control_plane.api_server().argv
    assert f"kubernetes.default.svc.{domain}" in control_plane_requests(PLAN, domain)[0].names
    assert f"kubernetes {domain} " in dns["data"]["Corefile"]
