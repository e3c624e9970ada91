# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be in the collection's tarball, and what must not: of the tracked files those that its content uses."""

from __future__ import annotations

import tarfile
from collections.abc import Set as AbstractSet
from pathlib import Path

MADE = frozenset({"MANIFEST.json", "FILES.json"})
"""By the build."""
SHIPPED = (
    "CHANGELOG.rst",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "changelogs/",
    "controlplane/",
    "docs/",
    "extensions/eda/",
    "images/",
    "meta/",
    "playbooks/",
    "plugins/",
    "roles/",
    "tests/config.yml",
)
"""How the paths begin that belong into the tarball; images/ builds the images from controlplane/ where a role runs."""
SIZE_LIMIT = 20 << 20
"""Bytes; Galaxy takes no more."""


def packed(tarball: Path) -> dict[str, tarfile.TarInfo]:
    """Return the tarball's files and links by path."""
    with tarfile.open(tarball) as archive:
        return {member.name.removeprefix("./"): member for member in archive.getmembers() if not member.isdir()}


def empty_folders(tarball: Path) -> list[str]:
    """Return the folders of a tarball without any file."""
    with tarfile.open(tarball) as archive:
        members = {member.name.removeprefix("./"): member.isdir() for member in archive.getmembers()}
    files = [path for path, is_folder in members.items() if not is_folder]
    folders = [path for path, is_folder in members.items() if is_folder and path]
    return [folder for folder in sorted(folders) if not any(file.startswith(f"{folder}/") for file in files)]


def problems(members: AbstractSet[str], tracked: AbstractSet[str]) -> list[str]:
    """Compare the tarball's paths with the tracked ones; return what is wrong, in words."""
    expected = {path for path in tracked if path.startswith(SHIPPED)}
    found = [f"{path}: is used, but not in the tarball (build_ignore?)" for path in sorted(expected - members)]
    surplus = sorted(members - expected - MADE)
    found += [f"{path}: is in the tarball, but nothing in it uses it (build_ignore?)" for path in surplus]
    roles = {path.split("/")[1] for path in members if path.startswith("roles/")}
    found += [f"roles/{role}: has no README.md" for role in sorted(roles) if f"roles/{role}/README.md" not in members]
    return found


def check(tarball: Path, tracked: AbstractSet[str]) -> list[str]:
    """Return everything that is wrong with a tarball."""
    members = packed(tarball)
    found = problems(members.keys(), tracked)
    found += [f"{path}: is a link" for path, member in members.items() if not member.isfile()]
    found += [f"{path}: is an empty folder (build_ignore?)" for path in empty_folders(tarball)]
    if tarball.stat().st_size > SIZE_LIMIT:
        found.append(f"{tarball.name}: has {tarball.stat().st_size} bytes, more than Galaxy takes")
    return found
