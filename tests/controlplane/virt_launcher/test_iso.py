# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from controlplane.virt_launcher.iso import SECTOR, write_iso

FILES = {"user-data": b"#!/bin/sh\n", "meta-data": b"{}", "network-config": b"x" * 5000}


def test_equal_files_give_equal_bytes() -> None:
    assert write_iso("cidata", FILES) == write_iso("cidata", dict(reversed(FILES.items())))


def test_the_image_is_whole_sectors_and_as_long_as_it_says() -> None:
    image = write_iso("cidata", FILES)
    said = int.from_bytes(image[16 * SECTOR + 80 : 16 * SECTOR + 84], "little")
    assert (len(image) % SECTOR, len(image) // SECTOR) == (0, said)


def test_the_label_is_where_guests_look_for_it() -> None:
    image = write_iso("cidata", FILES)
    assert image[16 * SECTOR + 40 : 16 * SECTOR + 72] == b"cidata".ljust(32)
    assert image[17 * SECTOR + 40 : 17 * SECTOR + 72] == "cidata".ljust(16).encode("utf-16-be")


def test_it_is_not_smaller_than_what_busybox_reads() -> None:
    assert len(write_iso("cidata", {"meta-data": b""})) > 0x11000


@pytest.mark.skipif(shutil.which("xorriso") is None, reason="xorriso is another reader of ISO images")
def test_another_reader_finds_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "seed.iso").write_bytes(write_iso("cidata", FILES))
    command = [
        "xorriso",
        "-osirrox",
        "on",
        "-indev",
        str(tmp_path / "seed.iso"),
        "-extract",
        "/",
        str(tmp_path / "out"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == FILES


@pytest.mark.parametrize(
    ("label", "files"),
    [
        pytest.param("", FILES, id="no label"),
        pytest.param("x" * 17, FILES, id="long label"),
        pytest.param("cidata", {}, id="no file"),
        pytest.param("cidata", {"ü": b""}, id="name"),
        pytest.param("cidata", {"x" * 61: b""}, id="long name"),
        pytest.param("cidata", {str(number): b"" for number in range(17)}, id="many files"),
    ],
)
def test_what_the_small_writer_cannot_do_is_refused(label: str, files: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="ISO"):
        write_iso(label, files)
