# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image as a file: reading an OCI archive, and where the lab stores it. Knows nothing of containerd."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.errors import LabError

_NAME_ANNOTATIONS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """An OCI archive on disk. Its digest is the digest of its index, so equal images have equal digests."""

    path: Path
    digest: str
    reference: str
    manifest: str
    """`sha256:...` of the manifest that the reference names."""

    @property
    def repository(self) -> str:
        """Return the reference without its tag."""
        head, _unused, tail = self.reference.rpartition(":")
        return head if head and "/" not in tail else self.reference


def read_archive(path: Path, *, reference: str | None = None) -> Archive:
    """Read an archive. Raises LabError if the file is no OCI archive or has no image name."""
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile("index.json")
            content = member.read() if member else b""
            index: dict[str, Any] = json.loads(content)
    except FileNotFoundError as error:
        raise LabError(f"{path}: no such file; give the path of an OCI archive") from error
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise LabError(
            f"{path} is not an OCI archive ({reason}); write one with `buildah push IMAGE oci-archive:FILE:NAME:TAG`"
        ) from error
    named = reference or _name_in(index)
    if not named:
        raise LabError(f"{path} does not name the image; add --reference NAME:TAG")
    manifests = index.get("manifests") or [{}]
    if len(manifests) != 1 or "digest" not in manifests[0]:
        raise LabError(f"{path} holds {len(manifests)} images; the lab imports archives of one image each")
    digest = hashlib.sha256(content + named.encode()).hexdigest()
    return Archive(path=path, digest=digest, reference=full_reference(named), manifest=manifests[0]["digest"])


def _name_in(index: dict[str, Any]) -> str | None:
    for manifest in index.get("manifests", []):
        for key in _NAME_ANNOTATIONS:
            name = manifest.get("annotations", {}).get(key)
            # A bare tag ("latest") is valid in an OCI layout, and no image name for a cluster.
            if isinstance(name, str) and "/" in name:
                return name
    return None


def full_reference(name: str) -> str:
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def keep(archive: Archive, directory: Path) -> Archive:
    """Store the archive with the lab's state, for nodes that join later; as a hard link where possible."""
    directory.mkdir(parents=True, exist_ok=True)
    stored = directory / f"{archive.digest}.tar"
    if not stored.exists():
        try:
            os.link(archive.path.resolve(), stored)
        except OSError:
            partial = stored.with_suffix(f".{os.getpid()}")
            shutil.copyfile(archive.path, partial)
            partial.replace(stored)
    return replace(archive, path=stored)


def kept_archives(references: dict[str, str], directory: Path) -> list[Archive]:
    return [
        read_archive(directory / f"{digest}.tar", reference=reference)
        for digest, reference in references.items()
        if (directory / f"{digest}.tar").exists()
    ]
