# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a root file system: what is missing is named with its remedy, and mmdebstrap gets what the lists say."""

from __future__ import annotations

from pathlib import Path

import pytest

from images import rootfs
from images.mirrors import NO_MIRRORS, Mirrors


def a_program(folder: Path, script: str, name: str = "mmdebstrap") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but newuidmap and what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    a_program(folder, "", "newuidmap")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(rootfs, "KEYRING", tmp_path / "keyring.gpg")
    return folder


def test_a_package_list_has_comments_and_is_sorted() -> None:
    assert rootfs.parse_packages("# two\ntini\n\nbusybox  # a shell\ntini\n") == ("busybox", "tini")


def test_everything_that_is_missing_is_said_at_once_with_the_remedy(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(rootfs.RootfsError) as caught:
        rootfs.make_rootfs(["tini"], tmp_path / "root.tar", rootfs.Debian(), NO_MIRRORS)
    message = str(caught.value)
    assert "mmdebstrap is not installed: apt-get install mmdebstrap, or build the images with podman" in message
    assert "keyring.gpg is not there: apt-get install debian-archive-keyring" in message


def test_only_an_ordinary_user_needs_newuidmap(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.gpg").touch()
    a_program(programs, "")
    (programs / "newuidmap").unlink()
    monkeypatch.setattr("os.geteuid", lambda: 107)
    with pytest.raises(rootfs.RootfsError, match="newuidmap is not installed: apt-get install uidmap, or run as root"):
        rootfs.make_rootfs(["tini"], tmp_path / "root.tar", rootfs.Debian(), NO_MIRRORS)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    rootfs.make_rootfs(["tini"], tmp_path / "root.tar", rootfs.Debian(), NO_MIRRORS)


def test_mmdebstrap_gets_packages_suite_target_and_sources(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "keyring.gpg").touch()
    a_program(programs, f'for one in "$@"; do echo "$one"; done > {tmp_path}/arguments')
    debian = rootfs.Debian("bookworm", ("amd64", "i386"))
    mirrors = Mirrors("http://mirror.example/debian", "http://mirror.example/security")
    rootfs.make_rootfs(["busybox", "tini"], tmp_path / "root.tar", debian, mirrors)
    said = (tmp_path / "arguments").read_text().splitlines()
    assert said[-7:] == [
        "--architectures=amd64,i386",
        "--include=busybox,tini",
        "bookworm",
        f"{tmp_path}/root.tar",
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/security bookworm-security main",
    ]
    assert "--variant=minbase" in said


def test_where_no_mirror_is_known_mmdebstrap_chooses(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "keyring.gpg").touch()
    a_program(programs, f'echo "$@" > {tmp_path}/arguments')
    rootfs.make_rootfs(["tini"], tmp_path / "root.tar", rootfs.Debian(), NO_MIRRORS)
    assert (tmp_path / "arguments").read_text().endswith(f"trixie {tmp_path}/root.tar\n")


def test_an_older_suite_that_the_mirror_has_dropped_is_fetched_from_elsewhere(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "keyring.gpg").touch()
    a_program(programs, f'echo "$@" >> {tmp_path}/arguments; case $* in *archive.debian.org*) ;; *) exit 25 ;; esac')
    debian = rootfs.Debian("bookworm", ("amd64", "i386"), older=("bullseye", "i386"))
    rootfs.make_rootfs(["tini"], tmp_path / "root.tar", debian, Mirrors("http://mirror.example/debian"))
    first, second = (tmp_path / "arguments").read_text().splitlines()
    assert first.endswith("deb [arch=i386] http://mirror.example/debian bullseye main")
    assert second.endswith("deb [arch=i386] http://archive.debian.org/debian bullseye main")


def test_a_failure_carries_the_last_lines_that_mmdebstrap_said(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "keyring.gpg").touch()
    a_program(programs, "echo 'E: Unable to locate package tiny' >&2; exit 25")
    with pytest.raises(rootfs.RootfsError, match=r"is a Debian mirror reachable.*\n.*Unable to locate package tiny"):
        rootfs.make_rootfs(["tiny"], tmp_path / "root.tar", rootfs.Debian(), NO_MIRRORS)
