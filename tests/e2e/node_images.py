# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images on nodes, changed with containerd's own client: delete one, rename one, or build one with another
digest.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from images.oci import Config, Layer, write_archive
from lab import Lab
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.e2e.cluster import Cluster


def images(cluster: Cluster, node: str, *arguments: str) -> str:
    """Run `ctr images` on a node."""
    lab = Lab(cluster.name)
    client, socket = ensure_programs(lab.cache, silent).node("ctr"), lab.describe().distribution.runtime_socket
    command = [str(client), "--address", socket, "--namespace", "k8s.io", "images", *arguments]
    return lab.node(node).run(command).stdout


def build_anew(archive: Path, folder: Path, reference: str) -> Path:
    """Write an image with the same layers, another name and another digest; return the archive."""
    with tarfile.open(archive) as image:

        def read(name: str) -> Any:
            content = image.extractfile(name)
            assert content is not None, name
            return json.load(content)

        (described,) = read("index.json")["manifests"]
        manifest = read(_blob(described["digest"]))
        run = read(_blob(manifest["config"]["digest"]))["config"]
        layers = [layer["digest"] for layer in manifest["layers"]]
        image.extractall(folder, [image.getmember(_blob(layer)) for layer in layers], filter="data")
    config = Config(
        entrypoint=run.get("Entrypoint", ()),
        command=run.get("Cmd", ()),
        environment=dict(entry.split("=", 1) for entry in run.get("Env", ())),
        user=run.get("User", ""),
        working_directory=run.get("WorkingDir", "/"),
        labels={**run.get("Labels", {}), "built": "anew"},
    )
    blobs = [Layer(folder / _blob(layer), layer.removeprefix("sha256:")) for layer in layers]
    return write_archive(folder / "anew.tar", reference, blobs, config).path


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"
