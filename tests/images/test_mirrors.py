# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's mirror is the one that this machine's apt uses; no host stands in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from images import mirrors
from images.mirrors import NO_MIRRORS, Mirrors, read_targets, source_lines, source_lines_with_older

ARCHIVE, SECURITY = "http://mirror.example/debian", "http://mirror.example/debian-security"


def targets(*rows: tuple[str, str, str, str]) -> list[str]:
    return ["|".join(row) for row in rows]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            targets(
                (f"{ARCHIVE}/", "bookworm", "main", "Debian"),
                (f"{ARCHIVE}/", "bookworm-updates", "main", "Debian"),
                (f"{SECURITY}/", "bookworm-security", "main", "Debian"),
            ),
            Mirrors(ARCHIVE, SECURITY),
            id="a Debian, whichever",
        ),
        pytest.param(
            targets((f"{ARCHIVE}/", "trixie", "main", "$(ORIGIN)"), (f"{SECURITY}/", "trixie-security", "main", "")),
            Mirrors(ARCHIVE, SECURITY),
            id="its lists were never fetched",
        ),
        pytest.param(
            targets(
                ("https://packages.example/apt/", "bookworm", "main", "Somebody"),
                ("https://packages.example/docker/", "trixie", "stable", "Docker"),
                (f"{ARCHIVE}/", "trixie", "main", "Debian"),
            ),
            Mirrors(ARCHIVE),
            id="others' packages for Debian are not Debian",
        ),
        pytest.param(
            targets(("http://archive.example/ubuntu/", "noble", "main", "Ubuntu")), NO_MIRRORS, id="another system"
        ),
        pytest.param(
            targets(
                ("cdrom://Debian/", "trixie", "main", "Debian"), ("file:///srv/debian/", "trixie", "main", "Debian")
            ),
            NO_MIRRORS,
            id="a disc, a folder",
        ),
        pytest.param(["", "nothing|of|this"], NO_MIRRORS, id="something else"),
    ],
)
def test_debian_is_picked_among_the_sources_of_apt(rows: list[str], expected: Mirrors) -> None:
    assert read_targets(rows) == expected


def test_of_a_list_of_mirrors_the_first_serves(tmp_path: Path) -> None:
    (tmp_path / "debian.list").write_text(
        f"# chosen by the provider\n{ARCHIVE} priority:1\nhttp://other.example/debian\n"
    )
    rows = targets((f"mirror+file:{tmp_path}/debian.list/", "trixie", "main", "Debian"))
    assert read_targets(rows) == Mirrors(ARCHIVE)
    assert read_targets(targets((f"mirror+file:{tmp_path}/gone/", "trixie", "main", "Debian"))) == NO_MIRRORS


def test_a_machine_without_apt_knows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mirrors.of_this_machine() == NO_MIRRORS


def test_apt_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "apt-get"
    program.write_text(f'#!/bin/sh\ntest "$1" = indextargets && echo "{ARCHIVE}/|trixie|main|Debian"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mirrors.of_this_machine() == Mirrors(ARCHIVE)
    program.write_text("#!/bin/sh\nexit 100\n")
    assert mirrors.of_this_machine() == NO_MIRRORS


def test_updates_are_asked_for_where_security_updates_are_known() -> None:
    assert source_lines("trixie", Mirrors(ARCHIVE, SECURITY), has_updates=False) == [f"deb {ARCHIVE} trixie main"]
    assert source_lines("trixie", Mirrors(ARCHIVE), has_updates=True) == [f"deb {ARCHIVE} trixie main"]
    assert source_lines("trixie", Mirrors(ARCHIVE, SECURITY), has_updates=True) == [
        f"deb {ARCHIVE} trixie main",
        f"deb {ARCHIVE} trixie-updates main",
        f"deb {SECURITY} trixie-security main",
    ]
    assert source_lines("trixie", NO_MIRRORS, has_updates=True) == []


def test_an_older_suite_is_asked_for_at_the_mirror_and_then_where_removed_ones_are() -> None:
    older = ("bullseye", "i386")
    assert source_lines_with_older("bookworm", Mirrors(ARCHIVE, SECURITY), older) == [
        [f"deb {ARCHIVE} bookworm main", f"deb [arch=i386] {ARCHIVE} bullseye main"],
        [f"deb {ARCHIVE} bookworm main", "deb [arch=i386] http://archive.debian.org/debian bullseye main"],
    ]
    assert source_lines_with_older("bookworm", NO_MIRRORS, older)[0] == [
        "deb http://deb.debian.org/debian bookworm main",
        "deb [arch=i386] http://deb.debian.org/debian bullseye main",
    ]
