# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import images into the containerd of a running machine, and list its images. store.py has the images of new nodes."""

from __future__ import annotations

from pathlib import Path

from lab.images.archive import Archive
from lab.machines.machine import Machine


def import_commands(archive: Archive, client: Path, socket: str, source: str) -> list[list[str]]:
    """Return the command lines of one import. The first reads the archive from `source`, "-" for its standard input.

    With `--local` the digest is the digest of the manifest, so that NAME@sha256:... resolves too. The second command
    sets the image's name, because archives name it by different annotations or none.
    """
    ctr = [str(client), "--address", socket, "--namespace", "k8s.io", "images"]
    record = f"{archive.repository}@{archive.manifest}"
    return [
        [*ctr, "import", "--local", "--digests", "--base-name", archive.repository, source],
        [*ctr, "tag", "--force", record, archive.reference],
    ]


def has_imported(machine: Machine, archive: Archive) -> bool:
    return _mark(machine, archive).exists()


def mark_imported(machine: Machine, archive: Archive) -> None:
    mark = _mark(machine, archive)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _mark(machine: Machine, archive: Archive) -> Path:
    return machine.paths.root / "imported" / archive.digest


def import_into(machine: Machine, archive: Archive, client: Path, socket: str) -> None:
    load, tag = import_commands(archive, client, socket, "-")
    with archive.path.open("rb") as stream:
        machine.run(load, stdin=stream.fileno())
    machine.run(tag)
    mark_imported(machine, archive)


def list_references(machine: Machine, program: Path, socket: str) -> list[str]:
    command = [str(program), "--address", socket, "--namespace", "k8s.io", "images", "list", "--quiet"]
    names = machine.run(command).stdout.split()
    return sorted(name for name in names if "@" not in name and not name.startswith("sha256:"))
