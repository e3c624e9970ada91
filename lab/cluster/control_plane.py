# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane's programs: etcd, API server, controller manager, scheduler, storage. Pure, except for files.

Reasons for unusual values: the controller manager's rate limit determines when the first Pod can be created (measured:
7.4 s with the default, 4.0 s with 300). Aggregator routing lets the API server reach Services without kube-proxy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.cluster.distributions import Distribution
from lab.collection import ROOT
from lab.machines.addresses import API_PORT, POD_NETWORK, SERVICE_NETWORK, Addresses
from lab.machines.machine import Program, search_path
from lab.paths import State
from lab.programs.ensure import Programs

ETCD_PORT = 2379
AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
AUDIT_FILE_MEGABYTES, AUDIT_FILES_BEFORE = 64, 1
"""128 MB at most. A lab with one VM writes about 20 MB an hour, so one file is enough for any test."""
WEBHOOK_STAGES = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


def render_admission(webhooks: Path, distribution: Distribution) -> dict[str, Any]:
    """Return the admission configuration: the API server authenticates to webhooks with this kubeconfig."""
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(webhooks),
    }
    plugins = [{"name": name, "configuration": configuration} for name in WEBHOOK_STAGES]
    plugins.append(distribution.pod_security_plugin())
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}


@dataclass(frozen=True, kw_only=True)
class ControlPlane:
    """Command lines for one lab's control plane."""

    state: State
    addresses: Addresses
    programs: Programs
    node_grace_seconds: int
    """Time without a heartbeat after which a node is NotReady. Kubernetes' default is 50."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    distribution: Distribution = field(default_factory=Distribution)

    def _file(self, name: str) -> str:
        return str(self.state.certificates / name)

    def _program(self, name: str, argv: list[str], environment: list[str] | None = None) -> Program:
        path = search_path(self.programs.kube_directory)
        return Program(
            name=name,
            argv=argv,
            environment=[f"PATH={path}", "HOME=/root", *(environment or [])],
            log=self.state.control_plane.logs / f"{name}.log",
        )

    def audit_policy(self) -> Path:
        return self.state.control_plane.etc / "audit-policy.yaml"

    def admission(self) -> Path:
        return self.state.control_plane.etc / "admission.yaml"

    def kubeconfig(self, name: str) -> Path:
        return self.state.control_plane.etc / f"{name}.kubeconfig"

    def etcd(self) -> Program:
        peer = "http://127.0.0.1:2380"
        client = f"http://127.0.0.1:{ETCD_PORT}"
        return self._program(
            "etcd",
            [
                str(self.programs.etcd),
                "--name=lab",
                f"--data-dir={self.state.etcd}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=lab={peer}",
                "--logger=zap",
                "--log-level=warn",
                f"--quota-backend-bytes={4 << 30}",
                "--unsafe-no-fsync",
            ],
        )

    def api_server(self) -> Program:
        return self._program(
            "kube-apiserver",
            [
                str(self.programs.kube("kube-apiserver")),
                f"--advertise-address={self.addresses.control_plane}",
                f"--bind-address={self.addresses.control_plane}",
                f"--secure-port={API_PORT}",
                f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
                f"--service-cluster-ip-range={SERVICE_NETWORK}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                f"--admission-control-config-file={self.admission()}",
                "--enable-aggregator-routing=true",
                "--allow-privileged=true",
                "--profiling=false",
                *self._api_server_gates(),
                *self._api_server_identity(),
                f"--audit-policy-file={self.audit_policy()}",
                f"--audit-log-path={self.state.audit_log}",
                f"--audit-log-maxsize={AUDIT_FILE_MEGABYTES}",
                f"--audit-log-maxbackup={AUDIT_FILES_BEFORE}",
            ],
        )

    def _api_server_gates(self) -> list[str]:
        gates = ",".join(f"{gate}={str(is_on).lower()}" for gate, is_on in sorted(self.feature_gates.items()))
        return [f"--feature-gates={gates}"] if gates else []

    def _api_server_identity(self) -> list[str]:
        return [
            f"--client-ca-file={self._file('ca.crt')}",
            f"--tls-cert-file={self._file('apiserver.crt')}",
            f"--tls-private-key-file={self._file('apiserver.key')}",
            f"--kubelet-client-certificate={self._file('apiserver-kubelet-client.crt')}",
            f"--kubelet-client-key={self._file('apiserver-kubelet-client.key')}",
            f"--kubelet-certificate-authority={self._file('ca.crt')}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-issuer=https://kubernetes.default.svc.{self.distribution.cluster_domain}",
            f"--service-account-key-file={self._file('sa.pub')}",
            f"--service-account-signing-key-file={self._file('sa.key')}",
            f"--requestheader-client-ca-file={self._file('front-proxy-ca.crt')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={self._file('front-proxy-client.crt')}",
            f"--proxy-client-key-file={self._file('front-proxy-client.key')}",
        ]

    def _client(self, name: str) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig(name)}",
            "--secure-port=0",  # nothing connects to it, and a server needs two inotify instances for its certificates
            "--leader-elect=false",
            "--kube-api-qps=300",
            "--kube-api-burst=600",
        ]

    def controller_manager(self) -> Program:
        return self._program(
            "kube-controller-manager",
            [
                str(self.programs.kube("kube-controller-manager")),
                *self._client("kube-controller-manager"),
                # The lab assigns a fixed Pod range to each node.
                "--allocate-node-cidrs=false",
                f"--cluster-cidr={POD_NETWORK}",
                f"--service-cluster-ip-range={SERVICE_NETWORK}",
                f"--root-ca-file={self._file('ca.crt')}",
                f"--service-account-private-key-file={self._file('sa.key')}",
                "--use-service-account-credentials=true",
                f"--cluster-signing-cert-file={self._file('ca.crt')}",
                f"--cluster-signing-key-file={self._file('ca.key')}",
                "--node-monitor-period=1s",
                f"--node-monitor-grace-period={self.node_grace_seconds}s",
            ],
        )

    def scheduler(self) -> Program:
        return self._program(
            "kube-scheduler", [str(self.programs.kube("kube-scheduler")), *self._client("kube-scheduler")]
        )

    def storage(self) -> Program:
        """The provisioner runs on this interpreter, which is visible through the overlay root."""
        return self._program(
            "lab-storage",
            [sys.executable, "-m", "lab.storage", self.state.name, self.addresses.server],
            [f"PYTHONPATH={ROOT}", "PYTHONUNBUFFERED=1"],
        )
