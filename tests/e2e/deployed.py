# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create a lab with the control plane, as a user would: with the collection's role."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import Lab
from lab.collection import linked_under
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.e2e.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
EMULATED = {"control_plane_use_emulation": True}
PLAY = """
- hosts: localhost
  gather_facts: false
  roles: [virtops.kubevirt.{role}]
"""


@contextmanager
def deployed(
    name: str, nodes: int = 1, *, lab_options: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[Cluster]:
    """Have a lab with the control plane inside the block, and delete it after.

    lab_options: of Lab.up. options: variables of the role, in addition to emulation. Two checkouts on one machine need
    different values of E2E_LAB_PREFIX.
    The nodes have the images from their creation. The Molecule scenario of role launcher_image tests their import, and
    test_readme.py the playbook for both.
    """
    name = os.environ.get("E2E_LAB_PREFIX", "") + name
    lab = Lab(name)
    with lab.running(nodes, images=list(archives().values()), **(lab_options or {})):
        apply_role(lab, "control_plane", {**EMULATED, **options})
        kubectl = ensure_programs(lab.cache, silent).kube("kubectl")
        yield Cluster(
            name=name,
            kubeconfig=lab.kubeconfig,
            audit_log=lab.audit_log,
            nodes=tuple(lab.node_names()),
            program=(str(kubectl), "--kubeconfig", str(lab.kubeconfig)),
        )


def upgrade(cluster: Cluster, **options: Any) -> None:
    """Apply the role of the control plane once more, without changes to the nodes."""
    apply_role(Lab(cluster.name), "control_plane", {**EMULATED, **options})


def archives() -> dict[str, Path]:
    """Build the images, which is fast without changes, and return the archive of each."""
    command = [sys.executable, "-m", "images", "build", "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return {image["name"]: Path(image["archive"]) for image in json.loads(done.stdout)}


def apply_role(lab: Lab, role: str, options: Mapping[str, Any]) -> None:
    """Apply a role to a lab; a failure has Ansible's output."""
    variables = json.dumps(options)
    with tempfile.TemporaryDirectory(prefix=f"virtops-{lab.name}-") as folder:
        playbook = Path(folder) / "playbook.yml"
        playbook.write_text(PLAY.format(role=role))
        program = str(Path(sys.executable).parent / "ansible-playbook")
        command = [program, "--extra-vars", variables, str(playbook)]
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(linked_under(Path(folder))),
            "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
        }
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
