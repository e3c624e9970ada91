# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's images: listed, pulled and removed by crictl; imported by skopeo or podman, which share CRI-O's storage.

crictl cannot import. The storage is that of /etc/containers/storage.conf, which all of them read.
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
_HELD = "in use by"
"""In what CRI-O says of an image that a container holds, as its own or as a volume."""


@dataclass(frozen=True)
class Removal:
    """What of one image goes. arguments: what crictl is given; names: those that the node then has no more."""

    arguments: list[str]
    names: list[str]


@dataclass(frozen=True)
class Crio:
    """client: crictl, with arguments if it needs any. importer: skopeo or podman; the one that is there by default.

    crictl by itself waits 2 s for an answer, and removing an image takes longer on a node that has work to do.
    """

    client: str = f"crictl --timeout 2m --runtime-endpoint unix://{SOCKET} --image-endpoint unix://{SOCKET}"
    importer: str = ""

    def records(self) -> list[Record]:
        """Return every name that there is, and what each stands for."""
        return [record for image in self._images() for record in _records_of(image)]

    def load(self, name: str, archive: str) -> None:
        """Import an OCI archive under a name; its manifest, and so its digest, stays as it is."""
        importer = words(self._importer())
        if importer[-1].rpartition("/")[2] == "podman":
            identity = run([*importer, "pull", "--quiet", f"oci-archive:{archive}"]).split()[-1]
            run([*importer, "tag", identity, name])
        else:
            run([*importer, "copy", "--quiet", f"oci-archive:{archive}", f"containers-storage:{name}"])

    def pull(self, name: str, username: str = "", password: str = "") -> None:
        """Fetch an image from its registry. crictl reads a user with a password from its environment."""
        credentials = {"CRICTL_CREDS": f"{username}:{password}"} if username else {}
        run([*words(self.client), "pull", name], environment=credentials)

    def remove(self, repository: str) -> list[str]:
        """Remove all names of a repository; the content goes with an image's last name. Return the names.

        CRI-O removes nothing that a container holds, though that has ended: it is waited for, and then an error.
        """
        removals = self._removals(repository)
        names = [name for removal in removals for name in removal.names]
        deadline = time.monotonic() + COLLECTED_SECONDS
        while removals and (held := self._held(removals)):
            if time.monotonic() >= deadline:
                raise VirtError(
                    f"{repository} is still used on this node, and CRI-O removes no image that is: take the Pods away "
                    f"that use it. {held}"
                )
            time.sleep(1)
            removals = self._removals(repository)
        return names

    def _held(self, removals: list[Removal]) -> str:
        """Remove images. Return what CRI-O says of one that a container holds; nothing if none is."""
        try:
            run([*words(self.client), "rmi", *(one for removal in removals for one in removal.arguments)])
        except VirtError as error:
            if _HELD not in error.message:
                raise
            return error.message
        return ""

    def _removals(self, repository: str) -> list[Removal]:
        found = (removal_of(image, repository) for image in self._images())
        return [removal for removal in found if removal.arguments]

    def _images(self) -> list[dict[str, Any]]:
        printed = run([*words(self.client), "images", "--output", "json"])
        try:
            return list(json.loads(printed).get("images") or [])
        except (ValueError, AttributeError) as error:
            raise VirtError(f"{self.client} images printed no JSON: {error}") from error

    def _importer(self) -> str:
        found = self.importer or next((one for one in _IMPORTERS if shutil.which(one)), "")
        if not found:
            raise VirtError(
                "skopeo or podman import archives into CRI-O's storage, and neither is on the node: install one (both "
                "read /etc/containers/storage.conf, as CRI-O does), or have the nodes pull from a registry"
            )
        return found


def removal_of(image: dict[str, Any], repository: str) -> Removal:
    """Return how to remove what an image has of a repository: by its id, if it is nobody else's."""
    names = [*(image.get("repoTags") or []), *(image.get("repoDigests") or [])]
    own = [name for name in names if repository_of(name) == repository]
    if own and len(own) == len(names):
        return Removal([str(image["id"])], own)
    tags = [name for name in own if "@" not in name]
    return Removal(tags, tags)


def _records_of(image: dict[str, Any]) -> Iterator[Record]:
    digests = [str(one).rpartition("@")[2] for one in image.get("repoDigests") or []]
    for name in image.get("repoTags") or []:
        yield from (Record(name, digest) for digest in digests)
    for name in image.get("repoDigests") or []:
        yield Record(name, str(name).rpartition("@")[2])
