# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's images, by its client ctr, in the namespace of Kubernetes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .program import run, words
from .records import Record, removable, repository_of

COLLECTED_SECONDS = 90
"""The kubelet removes the containers of deleted Pods about once a minute; until then they use the image."""


@dataclass(frozen=True)
class Containerd:
    """client: ctr, with arguments if it needs any. hosts_directory: the settings of registries on the node."""

    client: str = "ctr"
    hosts_directory: str = "/etc/containerd/certs.d"

    def records(self) -> list[Record]:
        """Return every name. The third column is the digest; later columns contain blanks."""
        rows = [line.split() for line in self._images("list").splitlines()[1:]]
        return [Record(row[0], row[2]) for row in rows if len(row) > 2]

    def load(self, name: str, archive: str) -> None:
        """Import an OCI archive. With `--local` the digest in name@digest is that of the manifest."""
        self._images("import", "--local", "--digests", "--base-name", repository_of(name), archive)

    def pull(self, name: str, username: str = "", password: str = "") -> None:
        """Pull an image. ctr asks for the password at its terminal."""
        user = ["--user", username] if username else []
        self._images("pull", "--hosts-dir", self.hosts_directory, *user, name, typed=password)

    def remove(self, repository: str) -> list[str]:
        """Remove all names of a repository and wait until their content is removed. Return the names.

        Content that a container uses stays until the container is gone.
        """
        names = removable(repository, self.records())
        if not names:
            return []
        deadline = time.monotonic() + COLLECTED_SECONDS
        while self._is_used(names) and time.monotonic() < deadline:
            time.sleep(1)
        self._images("remove", "--sync", *names)
        return names

    def _is_used(self, names: list[str]) -> bool:
        rows = [line.split() for line in self._ask("containers", "list").splitlines()[1:]]
        return any(len(row) > 1 and row[1] in names for row in rows)

    def _images(self, verb: str, *arguments: str, typed: str = "") -> str:
        return self._ask("images", verb, *arguments, typed=typed)

    def _ask(self, *arguments: str, typed: str = "") -> str:
        return run([*words(self.client), "--namespace", "k8s.io", *arguments], typed=typed)
