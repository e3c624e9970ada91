# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's programs and their configuration: containerd, kubelet, kube-proxy, CNI. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.cluster.distributions import Distribution
from lab.images.containerd import containerd_configuration
from lab.machines.addresses import DNS_SERVICE, POD_NETWORK, Addresses, node_name
from lab.machines.machine import Program, search_path
from lab.paths import MachinePaths, State
from lab.programs.ensure import Programs
from lab.programs.modules import CNI_PROGRAMS


@dataclass(frozen=True, kw_only=True)
class Node:
    """Command lines and configuration files of one node."""

    state: State
    addresses: Addresses
    programs: Programs
    number: int
    runc: str
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    distribution: Distribution = field(default_factory=Distribution)

    @property
    def name(self) -> str:
        return node_name(self.number)

    @property
    def paths(self) -> MachinePaths:
        return self.state.node(self.name)

    def kubeconfig(self, name: str) -> Path:
        return self.paths.etc / f"{name}.kubeconfig"

    def binds(self) -> list[tuple[Path, str]]:
        """Bind mounts of standard paths to the host's disk: an overlay cannot be the base of containers' overlays."""
        root = self.paths.root
        kubelet_root = self.distribution.kubelet_root
        # The kubelet's sockets for plug-ins are at this path, wherever its root directory is.
        elsewhere = [] if kubelet_root == "/var/lib/kubelet" else [(root / "kubelet-root", kubelet_root)]
        return [
            (self.paths.containerd, "/var/lib/containerd"),
            (root / "kubelet", "/var/lib/kubelet"),
            *elsewhere,
            (root / "var-log", "/var/log"),
            (root / "cni", "/etc/cni/net.d"),
            (root / "opt-cni", "/opt/cni/bin"),
            (root / "virtops", "/var/lib/virtops"),
        ]

    def files(self) -> dict[Path, str]:
        """Configuration files by path."""
        etc = self.paths.etc
        return {
            self._containerd_file: containerd_configuration(
                self.programs.directories(*CNI_PROGRAMS), self.runc, socket=self.distribution.runtime_socket
            ),
            etc / "kubelet.yaml": json.dumps(self._kubelet_configuration()),
            self.paths.root / "cni" / "10-lab.conflist": json.dumps(cni_configuration(self.addresses, self.number)),
        }

    def containerd(self) -> Program:
        return self._program(
            "containerd",
            [str(self.programs.node("containerd")), "--config", str(self._containerd_file)],
            environment=[_stamp(self.files()[self._containerd_file])],
            path=self.programs.directories("containerd-shim-runc-v2"),
            # Clients that wait for the socket must not connect to the socket of a dead process.
            remove=[self.distribution.runtime_socket, self.distribution.runtime_socket + ".ttrpc"],
        )

    def kubelet(self) -> Program:
        return self._program(
            "kubelet",
            [
                str(self.programs.kube("kubelet")),
                f"--config={self.paths.etc / 'kubelet.yaml'}",
                f"--kubeconfig={self.kubeconfig('kubelet')}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.addresses.node(self.number)}",
                f"--root-dir={self.distribution.kubelet_root}",
            ],
            # Detects a cut connection after 4 s: the node is Ready 1-2 s after a short cut, not 5-20 s.
            environment=["HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2", _stamp(self.files())],
        )

    def proxy(self) -> Program:
        """It has flags, because it would watch a file with an inotify instance."""
        return self._program(
            "kube-proxy",
            [
                str(self.programs.kube("kube-proxy")),
                f"--kubeconfig={self.kubeconfig('kube-proxy')}",
                f"--hostname-override={self.name}",
                "--proxy-mode=nftables",
                "--detect-local-mode=ClusterCIDR",
                f"--cluster-cidr={POD_NETWORK}",
                # Zero keeps the host's connection-tracking settings.
                "--conntrack-max-per-core=0",
                "--conntrack-min=0",
                "--conntrack-tcp-timeout-established=0s",
                "--conntrack-tcp-timeout-close-wait=0s",
            ],
        )

    @property
    def _containerd_file(self) -> Path:
        return self.paths.etc / "containerd.toml"

    def _program(
        self,
        name: str,
        argv: list[str],
        *,
        environment: Sequence[str] = (),
        path: Sequence[Path] = (),
        remove: Sequence[str] = (),
    ) -> Program:
        directories = path or self.programs.directories()
        return Program(
            name=name,
            argv=argv,
            environment=[f"PATH={search_path(*directories)}", "HOME=/root", *environment],
            remove=list(remove),
            log=self.paths.logs / f"{name}.log",
        )

    def _kubelet_configuration(self) -> dict[str, Any]:
        certificates = self.state.certificates
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": str(self.addresses.node(self.number)),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(certificates / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(certificates / f"{self.name}-serving.crt"),
            "tlsPrivateKeyFile": str(certificates / f"{self.name}-serving.key"),
            "containerRuntimeEndpoint": f"unix://{self.distribution.runtime_socket}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [str(DNS_SERVICE)],
            "clusterDomain": self.distribution.cluster_domain,
            "resolvConf": "",  # not the host's DNS settings
            "readOnlyPort": 0,
            "healthzBindAddress": "127.0.0.1",
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            "serializeImagePulls": False,
            "registryPullQPS": 0,
            # A rebooted node first reports that its runtime is down. The default delays the next report for 10 s.
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "5m",
            "nodeLeaseDurationSeconds": 4,  # renewed every second, so a returning node is detected at once
            "featureGates": dict(self.feature_gates),
            "registerWithTaints": self.distribution.node_taints(self.number),
        }


def _stamp(configuration: object) -> str:
    """Return a hash for a program's environment, so that a changed configuration restarts the program."""
    return f"LAB_CONFIGURATION={hashlib.sha256(repr(configuration).encode()).hexdigest()[:16]}"


def cni_configuration(addresses: Addresses, number: int) -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [
            {
                # Not `bridge`: without br_netfilter in the kernel, responses between two Pods of a node would bypass
                # the Service rules.
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam",  # removed with the node: no address leaks after a power cut
                    "ranges": [[{"subnet": str(addresses.pods(number))}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables"},
        ],
    }
