# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mirrors of Debian's packages: the mirror that an option names, or the mirror of this machine's apt.

If apt has no mirror of Debian, mmdebstrap chooses one. The only hosts named here are for releases that mirrors drop.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ASKED = (
    "apt-get",
    "indextargets",
    "--format",
    "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)",
    "Created-By: Packages",
)
_SUITES = frozenset(("oldstable", "stable", "testing", "unstable", "bookworm", "trixie", "forky", "duke", "sid"))
_SECURITY = "-security"
_LISTED = "mirror+file:"
_USUAL = "http://deb.debian.org/debian"
_REMOVED = "http://archive.debian.org/debian"
"""Where releases are that have left the mirrors."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """URLs of Debian's archive and of its security updates; "" if unknown."""

    archive: str = ""
    security: str = ""


NO_MIRRORS = Mirrors()


def of_this_machine() -> Mirrors:
    """Return apt's mirrors of Debian; empty without apt, or if apt has none."""
    if shutil.which("apt-get") is None:
        return NO_MIRRORS
    done = subprocess.run(_ASKED, capture_output=True, text=True, check=False)
    return read_targets(done.stdout.splitlines()) if done.returncode == 0 else NO_MIRRORS


def read_targets(lines: Iterable[str]) -> Mirrors:
    """Select Debian's mirrors among apt's sources. lines: `URI|RELEASE|COMPONENT|ORIGIN`.

    ORIGIN is empty until apt has fetched its lists. Until then the name of the release decides.
    """
    archive, security = "", ""
    for uri, release, component, origin in (line.split("|") for line in lines if line.count("|") == 3):
        url = _url(uri)
        is_other = component != "main" or (origin not in ("", "$(ORIGIN)", "Debian"))
        if is_other or not url:
            continue
        if release in _SUITES:
            archive = archive or url
        elif release.removesuffix(_SECURITY) in _SUITES:
            security = security or url
    return Mirrors(archive, security)


def source_lines(suite: str, mirrors: Mirrors, *, has_updates: bool) -> list[str]:
    """Return apt's source lines for a suite; empty if no mirror is known."""
    if not mirrors.archive:
        return []
    lines = [f"deb {mirrors.archive} {suite} main"]
    if has_updates and mirrors.security:
        lines += [f"deb {mirrors.archive} {suite}-updates main", f"deb {mirrors.security} {suite}{_SECURITY} main"]
    return lines


def source_lines_with_older(suite: str, mirrors: Mirrors, older: tuple[str, str]) -> list[list[str]]:
    """Return apt's source lines for a suite and an older one, in the order in which they should be tried.

    older: the name of the suite, and its only architecture, so that no other index is fetched. Mirrors drop old suites.
    """
    name, architecture = older
    archive = mirrors.archive or _USUAL
    return [
        [f"deb {archive} {suite} main", f"deb [arch={architecture}] {place} {name} main"]
        for place in (archive, _REMOVED)
    ]


def _url(uri: str) -> str:
    """Return a URL that also works elsewhere: the first of a list of mirrors, "" for a disc or a folder."""
    if uri.startswith(_LISTED):
        uri = next(_listed(Path(uri.removeprefix(_LISTED).rstrip("/"))), "")
    return uri.rstrip("/") if uri.startswith(("http://", "https://")) else ""


def _listed(path: Path) -> Iterator[str]:
    if path.is_file():
        yield from (line.split()[0] for line in path.read_text().splitlines() if line.strip() and line[0] != "#")
