# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's images. crictl lists, pulls and removes them; skopeo or podman import, which crictl cannot.

All of them use the storage of /etc/containers/storage.conf.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._client.errors import VirtError
from .containerd import COLLECTED_SECONDS
from .program import run, words
from .records import Record, repository_of

SOCKET = "/run/crio/crio.sock"
_IMPORTERS = ("skopeo", "podman")
_IN_USE = "in use by"
"""Part of CRI-O's error for an image that a container uses, as its own or as a volume."""


@dataclass(frozen=True)
class Removal:
    """How to remove names of one image. arguments: for crictl; names: the names that this removes."""

    arguments: list[str]
    names: list[str]


@dataclass(frozen=True)
class Crio:
    """client: crictl, with arguments if it needs any. importer: skopeo or podman; by default the installed one.

    The default timeout of crictl, 2 s, is too short to remove an image on a busy node.
    """

    client: str = f"crictl --timeout 2m --runtime-endpoint unix://{SOCKET} --image-endpoint unix://{SOCKET}"
    importer: str = ""

    def records(self) -> list[Record]:
        """Return every name with its digests."""
        return [record for image in self._images() for record in _records_of(image)]

    def load(self, name: str, archive: str) -> None:
        """Import an OCI archive under a name. Manifest and digest stay the same."""
        importer = words(self._importer())
        if importer[-1].rpartition("/")[2] == "podman":
            identity = run([*importer, "pull", "--quiet", f"oci-archive:{archive}"]).split()[-1]
            run([*importer, "tag", identity, name])
        else:
            run([*importer, "copy", "--quiet", f"oci-archive:{archive}", f"containers-storage:{name}"])

    def pull(self, name: str, username: str = "", password: str = "") -> None:
        """Pull an image. crictl reads user and password from its environment."""
        credentials = {"CRICTL_CREDS": f"{username}:{password}"} if username else {}
        run([*words(self.client), "pull", name], environment=credentials)

    def remove(self, repository: str) -> list[str]:
        """Remove all names of a repository; the content of an image is removed with its last name. Return the names.

        CRI-O refuses to remove an image that a container uses, even if it has ended: wait, then raise VirtError.
        """
        removals = self._removals(repository)
        names = [name for removal in removals for name in removal.names]
        deadline = time.monotonic() + COLLECTED_SECONDS
        while removals and (holder := self._remove(removals)):
            if time.monotonic() >= deadline:
                raise VirtError(
                    f"{repository} is still used on this node, and CRI-O removes no used image: delete the Pods that "
                    f"use it. {holder}"
                )
            time.sleep(1)
            removals = self._removals(repository)
        return names

    def _remove(self, removals: list[Removal]) -> str:
        """Remove images. Return CRI-O's error about an image that a container uses, "" if none is used."""
        try:
            run([*words(self.client), "rmi", *(argument for removal in removals for argument in removal.arguments)])
        except VirtError as error:
            if _IN_USE not in error.message:
                raise
            return error.message
        return ""

    def _removals(self, repository: str) -> list[Removal]:
        removals = (removal_of(image, repository) for image in self._images())
        return [removal for removal in removals if removal.arguments]

    def _images(self) -> list[dict[str, Any]]:
        printed = run([*words(self.client), "images", "--output", "json"])
        try:
            return list(json.loads(printed).get("images") or [])
        except (ValueError, AttributeError) as error:
            raise VirtError(f"{self.client} images printed no JSON: {error}") from error

    def _importer(self) -> str:
        importer = self.importer or next((program for program in _IMPORTERS if shutil.which(program)), "")
        if not importer:
            raise VirtError(
                "skopeo or podman is needed to import archives into CRI-O's storage, and neither is on the node: "
                "install one (both read /etc/containers/storage.conf, as CRI-O does), or pull from a registry"
            )
        return importer


def removal_of(image: dict[str, Any], repository: str) -> Removal:
    """Return how to remove an image's names in a repository: by its id if it has no other names."""
    names = [*(image.get("repoTags") or []), *(image.get("repoDigests") or [])]
    matching = [name for name in names if repository_of(name) == repository]
    if matching and len(matching) == len(names):
        return Removal([str(image["id"])], matching)
    tags = [name for name in matching if "@" not in name]
    return Removal(tags, tags)


def _records_of(image: dict[str, Any]) -> Iterator[Record]:
    digests = [str(name).rpartition("@")[2] for name in image.get("repoDigests") or []]
    for name in image.get("repoTags") or []:
        yield from (Record(name, digest) for digest in digests)
    for name in image.get("repoDigests") or []:
        yield Record(name, str(name).rpartition("@")[2])
