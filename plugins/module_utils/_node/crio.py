# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's images: listed, pulled and removed by crictl; imported by skopeo or podman, which share CRI-O's storage.

crictl cannot import. The storage is that of /etc/containers/storage.conf, which all of them read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._client.errors import VirtError
from .program import run, words
from .records import Record, repository_of

SOCKET = "/run/crio/crio.sock"
_IMPORTERS = ("skopeo", "podman")


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
        """Remove all names of a repository; the content goes with an image's last name. Return the names."""
        names = [name for image in self._images() for name in names_to_remove(image, repository)]
        if names:
            run([*words(self.client), "rmi", *names])
        return names

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


def names_to_remove(image: dict[str, Any], repository: str) -> list[str]:
    """Return by which names to remove what an image has of a repository: by its id, if it is nobody else's."""
    names = [*(image.get("repoTags") or []), *(image.get("repoDigests") or [])]
    own = [name for name in names if repository_of(name) == repository]
    if own and len(own) == len(names):
        return [str(image["id"])]
    return [name for name in own if "@" not in name]


def _records_of(image: dict[str, Any]) -> Iterator[Record]:
    digests = [str(one).rpartition("@")[2] for one in image.get("repoDigests") or []]
    for name in image.get("repoTags") or []:
        yield from (Record(name, digest) for digest in digests)
    for name in image.get("repoDigests") or []:
        yield Record(name, str(name).rpartition("@")[2])
