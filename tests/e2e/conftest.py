# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab for each test module: up, deployed by the collection's own playbook, down again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.build import ensure_programs
from lab.cluster import Lab
from lab.inventory import render_inventory
from lab.progress import silent
from tests.e2e.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = {
    "node_kvm_required": False,
    "launcher_image_names": ["control-plane", "virt-launcher", "test-guest"],
    "launcher_image_build_python": sys.executable,
    "control_plane_use_emulation": True,
}


def run(*command: str, **environment: str) -> str:
    """Run a command to its end; its output is the failure's text."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def collections(directory: Path) -> Path:
    """Make this checkout importable as the collection virtops.kubevirt."""
    place = directory / "ansible_collections/virtops"
    place.mkdir(parents=True)
    (place / "kubevirt").symlink_to(ROOT)
    return directory


@pytest.fixture(scope="module")
def nodes() -> int:
    """How many nodes the module's lab has; a module overrides it."""
    return 1


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, nodes: int) -> Iterator[Cluster]:
    """A lab of its own with the control plane deployed, gone after the module."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")[:12].strip("-")
    lab = Lab(name)
    place = tmp_path_factory.mktemp(name)
    try:
        lab.up(nodes)
        inventory = place / "inventory.yml"
        inventory.write_text(render_inventory(lab))
        deploy(inventory, lab.kubeconfig, collections(place))
        kubectl = ensure_programs(lab.cache, silent).kube_directory / "kubectl"
        yield Cluster(
            name=name,
            kubeconfig=lab.kubeconfig,
            audit_log=lab.audit_log,
            nodes=tuple(lab.node_names()),
            program=(str(kubectl), "--kubeconfig", str(lab.kubeconfig)),
        )
    finally:
        lab.down()


def deploy(inventory: Path, kubeconfig: Path, collections_path: Path) -> None:
    """Run the collection's deploy playbook as a user would."""
    run(
        str(Path(sys.executable).parent / "ansible-playbook"),
        "--inventory",
        str(inventory),
        "--extra-vars",
        json.dumps(DEPLOY),
        "virtops.kubevirt.deploy",
        ANSIBLE_COLLECTIONS_PATH=str(collections_path),
        ANSIBLE_CONNECTION_PLUGINS=str(ROOT / "lab/ansible/connection_plugins"),
        K8S_AUTH_KUBECONFIG=str(kubeconfig),
    )
