# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io

import pycdlib
import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils.seed_image.iso9660 import SECTOR, write_iso

FILES = {"user-data": b"#!/bin/sh\n", "meta-data": b"{}", "network-config": b"x" * 5000}


def test_equal_files_give_equal_bytes() -> None:
    assert write_iso("cidata", FILES) == write_iso("cidata", dict(reversed(FILES.items())))


def test_the_image_is_whole_sectors_and_as_long_as_its_header_says() -> None:
    image = write_iso("cidata", FILES)
    size = int.from_bytes(image[16 * SECTOR + 80 : 16 * SECTOR + 84], "little")
    assert (len(image) % SECTOR, len(image) // SECTOR) == (0, size)


@pytest.mark.parametrize("size", [0, 1, 2048, 100_000])
def test_qemu_can_open_it_without_cache_on_any_file_system(size: int) -> None:
    """Direct I/O needs a size that is a multiple of the block size of its disk, or of a tmpfs."""
    assert len(write_iso("cidata", {"user-data": bytes(size)})) % 65536 == 0


def test_the_label_is_where_guests_read_it() -> None:
    image = write_iso("cidata", FILES)
    assert image[16 * SECTOR + 40 : 16 * SECTOR + 72] == b"cidata".ljust(32)
    assert image[17 * SECTOR + 40 : 17 * SECTOR + 72] == "cidata".ljust(16).encode("utf-16-be")


def test_the_image_has_the_minimum_size_of_busybox() -> None:
    assert len(write_iso("cidata", {"meta-data": b""})) > 0x11000


def test_another_reader_finds_names_and_contents() -> None:
    iso = pycdlib.PyCdlib()
    iso.open_fp(io.BytesIO(write_iso("cidata", FILES)))
    files = {}
    for child in iso.list_children(joliet_path="/"):
        if child.is_file():
            name, content = child.file_identifier().decode("utf-16-be"), io.BytesIO()
            iso.get_file_from_iso_fp(content, joliet_path=f"/{name}")
            files[name.removesuffix(";1")] = content.getvalue()  # the version of the file
    iso.close()
    assert files == FILES


@pytest.mark.parametrize("at", [16, 17], ids=["plain", "joliet"])
def test_each_tree_has_its_own_path_table_that_leads_to_its_root(at: int) -> None:
    """In both byte orders: Windows reads the table, Linux the record of the root."""
    image = write_iso("cidata", FILES)
    descriptor = image[at * SECTOR : (at + 1) * SECTOR]
    root = int.from_bytes(descriptor[158:162], "little")
    little, big = int.from_bytes(descriptor[140:144], "little"), int.from_bytes(descriptor[148:152], "big")

    assert int.from_bytes(image[little * SECTOR + 2 : little * SECTOR + 6], "little") == root
    assert int.from_bytes(image[big * SECTOR + 2 : big * SECTOR + 6], "big") == root


def test_every_directory_record_has_an_even_length() -> None:
    """ECMA-119, 9.1: a reader that relies on it would lose the next record."""
    image = write_iso("cidata", {**FILES, "a": b"", "ab": b""})
    for directory in (23, 24):
        at, lengths = directory * SECTOR, list[int]()
        while image[at]:
            lengths.append(image[at])
            at += image[at]
        assert len(lengths) == 2 + 5
        assert {item % 2 for item in lengths} == {0}


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
def test_unsupported_input_is_refused(label: str, files: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="ISO"):
        write_iso(label, files)
