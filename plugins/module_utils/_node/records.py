# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image names and digests of a container runtime, and those of one image. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_UNNAMED = "sha256:"
"""containerd's CRI keeps every image a second time under the digest of its configuration."""


@dataclass(frozen=True)
class Record:
    """One name of one image. A name may have several digests: of a manifest, and of the list that contains it."""

    name: str
    digest: str


def repository_of(name: str) -> str:
    """Return an image's name without tag and digest."""
    bare = name.partition("@")[0]
    head, colon, tail = bare.rpartition(":")
    return head if colon and "/" not in tail else bare


def digests_of(name: str, records: Iterable[Record]) -> list[str]:
    """Return the digests of a name; empty if the node lacks it."""
    return [record.digest for record in records if record.name == name]


def names_of(repository: str, records: Iterable[Record]) -> list[str]:
    """Return all names of a repository on the node, by tag and by digest."""
    return [record.name for record in records if record.name != repository and repository_of(record.name) == repository]


def removable(repository: str, records: Iterable[Record]) -> list[str]:
    """Return the names to remove so that the content of a repository is removed: its own, then the unnamed records.

    The unnamed record of content with a name in another repository stays.
    """
    all_records = list(records)
    own = names_of(repository, all_records)
    digests = {record.digest for record in all_records if record.name in own}
    in_use = {
        record.digest for record in all_records if record.name not in own and not record.name.startswith(_UNNAMED)
    }
    nameless = [
        record.name for record in all_records if record.name.startswith(_UNNAMED) and record.digest in digests - in_use
    ]
    return own + nameless
