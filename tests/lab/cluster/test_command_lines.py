# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines and configuration files of the lab's programs: control_plane.py and node.py."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from lab.cluster.control_plane import ControlPlane
from lab.cluster.node import Node
from lab.machines.addresses import Addresses
from lab.paths import State
from lab.programs.ensure import Programs

STATE, PLAN = State(name="t"), Addresses(index=0)
PROGRAMS = Programs(etcd_directory=Path("/c/etcd"), node_directory=Path("/c/node"), kube_directory=Path("/c/kube"))
CONTROL_PLANE = ControlPlane(state=STATE, addresses=PLAN, programs=PROGRAMS, node_grace_seconds=8)
NODE = Node(state=STATE, addresses=PLAN, programs=PROGRAMS, number=2, runc="/usr/sbin/runc")


@pytest.mark.parametrize(
    ("program", "argument"),
    [
        ("api_server", "--authorization-mode=Node,RBAC"),
        ("api_server", "--bind-address=10.99.0.1"),
        ("api_server", f"--admission-control-config-file={CONTROL_PLANE.admission()}"),
        ("api_server", "--enable-aggregator-routing=true"),
        ("api_server", "--requestheader-allowed-names=front-proxy-client"),
        ("api_server", "--audit-log-path=/var/lib/virtops-lab/t/audit/audit.log"),
        ("api_server", "--audit-log-maxsize=64"),
        ("api_server", "--audit-log-maxbackup=1"),
        ("controller_manager", "--node-monitor-grace-period=8s"),
        ("controller_manager", "--use-service-account-credentials=true"),
        ("scheduler", "--kube-api-qps=300"),
        ("etcd", "--listen-client-urls=http://127.0.0.1:2379"),
    ],
)
def test_the_control_plane_is_started_with(program: str, argument: str) -> None:
    assert argument in getattr(CONTROL_PLANE, program)().argv


def test_a_kubelet_refuses_anonymous_requests() -> None:
    configuration = json.loads(NODE.files()[NODE.paths.etc / "kubelet.yaml"])
    assert configuration["authentication"]["anonymous"] == {"enabled": False}
    assert configuration["authorization"] == {"mode": "Webhook"}
    assert configuration["address"] == "10.99.0.12"


def test_an_unprivileged_container_can_open_its_devices() -> None:
    configuration = tomllib.loads(NODE.files()[NODE.paths.etc / "containerd.toml"])
    runtime = configuration["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["device_ownership_from_security_context"] is True
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/usr/sbin/runc"


def test_pod_addresses_do_not_outlive_the_node() -> None:
    configuration = json.loads(NODE.files()[NODE.paths.root / "cni" / "10-lab.conflist"])
    ipam = configuration["plugins"][0]["ipam"]
    assert ipam["dataDir"].startswith("/run/")
    assert ipam["ranges"] == [[{"subnet": "10.244.2.0/24"}]]


def test_a_changed_configuration_changes_the_environment() -> None:
    other = Node(state=STATE, addresses=Addresses(index=1), programs=PROGRAMS, number=2, runc="/usr/sbin/runc")
    assert NODE.kubelet().environment != other.kubelet().environment


def test_another_runc_changes_the_environment_of_containerd_only() -> None:
    other = dataclasses.replace(NODE, runc="/c/runc-named-1/runc")
    assert NODE.containerd().environment != other.containerd().environment
    assert NODE.containerd().argv == other.containerd().argv


def test_the_proxy_does_not_change_the_hosts_connection_tracking() -> None:
    flags = dict(flag.split("=") for flag in NODE.proxy().argv[1:])
    assert flags["--proxy-mode"] == "nftables"
    assert flags["--conntrack-max-per-core"] == flags["--conntrack-min"] == "0"


@pytest.mark.parametrize("program", ["controller_manager", "scheduler"])
def test_programs_that_nobody_asks_do_not_serve(program: str) -> None:
    """Each server watches its certificates, and inotify instances are few."""
    argv = getattr(CONTROL_PLANE, program)().argv
    assert "--secure-port=0" in argv
    assert [flag for flag in argv if "tls-" in flag or "client-ca" in flag] == []
