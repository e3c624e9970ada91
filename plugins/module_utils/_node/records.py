# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's container runtime says that it has, and what of it belongs to an image. Pure: nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_UNNAMED = "sha256:"
"""containerd's CRI keeps every image a second time under the digest of its configuration, which holds its content."""


@dataclass(frozen=True)
class Record:
    """One name of one image. A runtime may give a name several digests: of a manifest, and of the list it is in."""

    name: str
    digest: str


def repository_of(name: str) -> str:
    """Return an image's name without tag and digest."""
    bare = name.partition("@")[0]
    head, colon, tail = bare.rpartition(":")
    return head if colon and "/" not in tail else bare


def digests_of(name: str, records: Iterable[Record]) -> list[str]:
    """Return what a name stands for on the node; nothing if it is not there."""
    return [record.digest for record in records if record.name == name]


def names_of(repository: str, records: Iterable[Record]) -> list[str]:
    """Return all names that a repository has on the node, by tag and by digest."""
    return [record.name for record in records if record.name != repository and repository_of(record.name) == repository]


def removable(repository: str, records: Iterable[Record]) -> list[str]:
    """Return the names to remove for the content of a repository to go: its own, then those without a name.

    What somebody else has under a name of theirs keeps its nameless record.
    """
    known = list(records)
    own = names_of(repository, known)
    digests = {record.digest for record in known if record.name in own}
    kept = {record.digest for record in known if record.name not in own and not record.name.startswith(_UNNAMED)}
    nameless = [one.name for one in known if one.name.startswith(_UNNAMED) and one.digest in digests - kept]
    return own + nameless
