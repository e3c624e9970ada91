# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""README as a user with a cluster types it; the cluster is a lab.

The collection is installed from its tarball into an empty home; kubectl and the kubeconfig are at their usual places.
Only the inventory differs: the nodes of the lab have other names and no SSH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from images.store import cache_directory
from lab import Lab
from lab.cluster.inventory import render_inventory
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.ansible_test import tracked
from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.readme import read_story

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
STORY = read_story()
EMULATION = "control_plane_use_emulation=true"
INSTALLED = ".ansible/collections/ansible_collections/virtops/kubevirt"
CONTENT = (
    "{ ctr -n k8s.io images list -q; ctr -n k8s.io content list -q; ctr -n k8s.io snapshots list | grep Committed; }"
    " | cut -d' ' -f1 | sort; ls -d /run/virtops* 2>/dev/null; ls /var/lib/kubelet/device-plugins | grep -v checkpoint"
)


@dataclass
class Reader:
    """A user at a shell. outputs: by command."""

    home: Path
    checkout: Path
    environment: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)

    def enter(self, command: str) -> int:
        """Run a command of README; return its exit code."""
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.checkout,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        self.outputs[command] = done.stdout
        return done.returncode


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab("readme").running(1) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Cluster:
    kubectl = ensure_programs(lab.cache, silent).kube("kubectl")
    program = (str(kubectl), "--kubeconfig", str(lab.kubeconfig))
    return Cluster(
        name=lab.name,
        kubeconfig=lab.kubeconfig,
        audit_log=lab.audit_log,
        nodes=tuple(lab.node_names()),
        program=program,
    )


@pytest.fixture(scope="module")
def reader(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A home with a kubeconfig, a checkout, and an inventory of the lab's nodes."""
    home, checkout = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("checkout")
    for path in tracked(ROOT):
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, checkout / path)
    (home / ".kube").mkdir()
    shutil.copy(lab.kubeconfig, home / ".kube/config")
    for name, text in {**STORY.files, "inventory.yml": render_inventory(lab)}.items():
        (checkout / name).write_text(text)
    kubectl = ensure_programs(lab.cache, silent).kube("kubectl").parent
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_", "KUBE"))}
    environment = {
        **inherited,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{kubectl}:{os.environ['PATH']}",
        "PIP_TARGET": str(home / "packages"),
        "VIRTOPS_CACHE": str(cache_directory().parent),  # reuse what was built before
        "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
    }
    environment.pop("PYTHONPATH", None)
    return Reader(home, checkout, environment)


def content(lab: Lab) -> list[str]:
    """List the contents of a node: images with their blobs and layers, our folder, sockets of device plugins.

    Files of containers are removed with them, and the sandbox of a deleted Pod within a minute by the kubelet;
    committed layers are those of images.
    """
    return lab.node("node-1").run(["/bin/sh", "-c", CONTENT]).stdout.split()


def digest_on_the_node(lab: Lab, name: str) -> str:
    """Return the digest of an image on the node, as its runtime reports it."""
    listed = lab.node("node-1").run(["ctr", "-n", "k8s.io", "images", "list", f"name=={name}"]).stdout
    return re.search(r"sha256:[0-9a-f]{64}", listed).group()


def revision_of_virt_api(cluster: Cluster) -> str:
    """Return the annotation that rolls out an image rebuilt under the same tag."""
    deployment = cluster.get("deployment", "virt-api", "kubevirt")
    return deployment["spec"]["template"]["metadata"]["annotations"]["virtops.kubevirt/image-revision"]


@pytest.mark.nightly
def test_the_commands_work_and_leave_nothing(lab: Lab, cluster: Cluster, reader: Reader) -> None:
    cluster.kubectl("rollout", "status", "deployment/coredns", "-n", "kube-system", f"--timeout={LIMIT_SECONDS}s")
    before = content(lab)  # including what the lab itself runs
    lacks_kvm = False
    *commands, removal = STORY.commands
    for command in commands:
        code = reader.enter(command)
        output = reader.outputs[command]
        if "virtops.kubevirt.deploy" in command and EMULATION not in command and code != 0:
            lacks_kvm = True
            assert "cannot run guests on KVM" in output, output[-6000:]
            assert EMULATION in output.replace("\n", " "), "the message has the whole remedy"
            continue
        assert code == 0, f"{command}:\n{output[-6000:]}"
    assert "first" in reader.outputs["kubectl get virtualmachines"]
    for look in ("kubectl get virtualmachines", "kubectl get virtualmachine web"):
        assert "Running" in reader.outputs[look]
    probe = reader.checkout / "roles/node_kvm/files/kvm_probe.py"
    answer = json.loads(subprocess.run([sys.executable, probe], capture_output=True, check=True).stdout)
    assert lacks_kvm is not answer["usable"]
    installed = reader.home / INSTALLED
    assert revision_of_virt_api(cluster) == digest_on_the_node(lab, "localhost/virtops/control-plane:0.1.0")
    compiled = [
        path for part in ("images", "controlplane", "roles") for path in (installed / part).rglob("__pycache__")
    ]
    assert compiled == [], "sources of the images must stay unchanged"
    assert reader.enter(removal) == 0, reader.outputs[removal][-6000:]
    assert content(lab) == before
