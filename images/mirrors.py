# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Debian's packages come from: the mirror that somebody named, or the one that this machine's apt uses.

No host is named here. A machine whose apt knows no Debian leaves the choice to mmdebstrap.
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


@dataclass(frozen=True, slots=True)
class Mirrors:
    """URLs of Debian's archive and of its security updates; "" where none is known."""

    archive: str = ""
    security: str = ""


NO_MIRRORS = Mirrors()


def of_this_machine() -> Mirrors:
    """Ask apt which mirrors it uses for Debian; none where there is no apt, or it has nothing of Debian."""
    if shutil.which("apt-get") is None:
        return NO_MIRRORS
    done = subprocess.run(_ASKED, capture_output=True, text=True, check=False)
    return read_targets(done.stdout.splitlines()) if done.returncode == 0 else NO_MIRRORS


def read_targets(lines: Iterable[str]) -> Mirrors:
    """Pick Debian's own among apt's sources: lines `URI|RELEASE|COMPONENT|ORIGIN`.

    ORIGIN is known once apt has fetched its lists. Before that a release's name must do.
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
    """Write apt's sources of a suite; nothing if no mirror is known."""
    if not mirrors.archive:
        return []
    lines = [f"deb {mirrors.archive} {suite} main"]
    if has_updates and mirrors.security:
        lines += [f"deb {mirrors.archive} {suite}-updates main", f"deb {mirrors.security} {suite}{_SECURITY} main"]
    return lines


def _url(uri: str) -> str:
    """Return a URL that serves elsewhere, too: the first of a list of mirrors, none for a disc or a folder."""
    if uri.startswith(_LISTED):
        uri = next(_listed(Path(uri.removeprefix(_LISTED).rstrip("/"))), "")
    return uri.rstrip("/") if uri.startswith(("http://", "https://")) else ""


def _listed(path: Path) -> Iterator[str]:
    if path.is_file():
        yield from (line.split()[0] for line in path.read_text().splitlines() if line.strip() and line[0] != "#")
