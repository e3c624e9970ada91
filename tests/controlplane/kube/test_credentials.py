# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.kube import credentials
from controlplane.kube.credentials import CredentialsError, from_kubeconfig, in_cluster
from controlplane.tls.certificates import make_ca
from tests.controlplane.kube.virtual import VirtualTime

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_bytes(make_ca("ca", 1_750_000_000, timedelta(days=3650)).certificate)
    return tmp_path


async def test_a_pod_uses_its_service_account_and_reads_a_renewed_token(service_account: Path) -> None:
    time = VirtualTime()
    known = in_cluster(IN_POD, time.monotonic, service_account)
    assert known.server == "https://10.96.0.1:443"
    assert await known.authorization(False) == "Bearer one"

    (service_account / "token").write_text("two\n")
    time.seconds += 59
    assert await known.authorization(False) == "Bearer one"
    time.seconds += 1
    assert await known.authorization(False) == "Bearer two"


async def test_a_refused_token_is_read_again_at_once(service_account: Path) -> None:
    known = in_cluster(IN_POD, VirtualTime().monotonic, service_account)
    (service_account / "token").write_text("two\n")

    assert await known.authorization(True) == "Bearer two"


async def test_a_missing_token_file_is_read_again_a_minute_later(service_account: Path) -> None:
    """Not on each request: there are hundreds each second."""
    time = VirtualTime()
    known = in_cluster(IN_POD, time.monotonic, service_account)
    (service_account / "token").unlink()
    time.seconds += 60
    assert await known.authorization(False) == "Bearer one"

    (service_account / "token").write_text("two\n")
    assert await known.authorization(False) == "Bearer one"
    time.seconds += 60
    assert await known.authorization(False) == "Bearer two"


def test_an_ipv6_server_is_bracketed(service_account: Path) -> None:
    known = in_cluster(IN_POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, VirtualTime().monotonic, service_account)

    assert known.server == "https://[fd00::1]:443"


def test_the_error_outside_a_pod_names_the_remedy() -> None:
    with pytest.raises(CredentialsError, match="set KUBECONFIG"):
        in_cluster({}, VirtualTime().monotonic)


def test_the_error_names_an_unmounted_token(tmp_path: Path, service_account: Path) -> None:
    (service_account / "token").unlink()

    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        in_cluster(IN_POD, VirtualTime().monotonic, service_account)


async def test_a_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}]
"""
    )

    known = await from_kubeconfig(path)

    assert known.server == "https://127.0.0.1:6443"
    assert await known.authorization(False) == "Bearer secret"


async def test_the_error_names_a_missing_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nowhere"):
        await from_kubeconfig(tmp_path / "nowhere")


def test_in_a_cluster_the_kubeconfig_library_is_not_imported() -> None:
    code = "import sys, controlplane.kube.watch, controlplane.kube.leader; sys.exit('kubernetes' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root()).returncode == 0


def root() -> Path:
    return Path(credentials.__file__).parents[2]
