# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page's libraries are those of the list, unchanged."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from images.build import COLLECTION
from images.page_libraries import LIST, PAGE, Library, LibraryError, digest, fetch, kept, read


@pytest.mark.parametrize("library", read(COLLECTION / PAGE), ids=lambda library: library.directory)
def test_the_files_have_the_recorded_checksum(library: Library) -> None:
    assert digest(kept(COLLECTION / PAGE, library)) == library.sha256
    assert library.integrity.startswith("sha512-")


def test_the_list_names_every_directory_of_the_page() -> None:
    directories = {path.name for path in (COLLECTION / PAGE).iterdir() if path.is_dir()}
    assert directories == {library.directory for library in read(COLLECTION / PAGE)}


FILES = {"package/lib/a.js": b"export default 1;\n", "package/lib/a.map": b"", "package/LICENSE": b"MIT"}
ENTRY = {"directory": "a", "package": "@x/a", "version": "1.0.0", "licence": "MIT", "files": ["lib/*.js", "LICENSE"]}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page whose list has one new library, and an npm that packs FILES."""
    archive = tmp_path / "packed.tgz"
    with tarfile.open(archive, "w:gz") as package:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            package.addfile(member, io.BytesIO(content))
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\ntest "$5" = @x/a@1.0.0 || exit 1\ncp {archive} "$4/x-a-1.0.0.tgz"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")
    page = tmp_path / "page"
    page.mkdir()
    write(page, integrity="", sha256="")
    return page


def write(page: Path, **changes: object) -> None:
    (page / LIST).write_text(json.dumps([{**ENTRY, **changes}]))


def test_a_new_library_is_written_with_the_files_of_its_patterns_and_recorded(page: Path) -> None:
    (library,) = fetch(page)

    assert kept(page, library) == {"lib/a.js": FILES["package/lib/a.js"], "LICENSE": b"MIT"}
    assert read(page) == [library]
    assert library.sha256 == digest(kept(page, library))
    assert fetch(page) == [library]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"integrity": "sha512-other"}, "@x/a@1.0.0 has the checksum sha512-.*has sha512-other"),
        ({"sha256": "other"}, "its files have the checksum .*has other"),
        ({"files": ["src/*"]}, "has no file src/"),
        ({"version": "2.0.0"}, "npm @x/a@2.0.0 failed"),
    ],
)
def test_what_is_not_the_recorded_package_is_refused_and_nothing_written(
    page: Path, changes: dict[str, object], words: str
) -> None:
    write(page, **{"integrity": "", "sha256": "", **changes})

    with pytest.raises(LibraryError, match=words):
        fetch(page)

    assert [path.name for path in page.iterdir()] == [LIST]
