# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trimming: keep-lists mean what they say, libraries follow, and a list that no longer fits is an error."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

import pytest

from images.tree import Node, directory, regular, symlink
from images.trim import TrimError, parse_keep_list, read_linkage, select, trim, unresolved

ELF_OF_THIS_TEST = Path(sys.executable).resolve()


def rooted(files: dict[str, Node]) -> dict[str, Node]:
    """Add the directories that files are in."""
    parents = {parent.as_posix() for name in files for parent in PurePosixPath(name).parents} - {"."}
    return {parent: directory() for parent in sorted(parents)} | files


TREE = rooted(
    {
        "lib": symlink("usr/lib"),
        "usr/bin/tool": regular(b"#!/bin/sh", mode=0o4755),
        "usr/lib/python/json.py": regular(b""),
        "usr/lib/python/test/test_json.py": regular(b""),
        "usr/lib/python/test/support.py": regular(b""),
    }
)


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        pytest.param(["usr/bin/tool"], {"lib", "usr/bin/tool"}, id="one file, and the merged directories"),
        pytest.param(["*/json.py"], {"lib", "usr/lib/python/json.py"}, id="a star crosses slashes"),
        pytest.param(
            ["usr/lib/python*", "!*/test/*", "*/support.py"],
            {
                "lib",
                "usr/lib/python",
                "usr/lib/python/json.py",
                "usr/lib/python/test",
                "usr/lib/python/test/support.py",
            },
            id="the last match decides",
        ),
        pytest.param(["usr/bin/tool", "!*/absent"], {"lib", "usr/bin/tool"}, id="what is taken out need not be there"),
    ],
)
def test_a_keep_list_chooses(patterns: list[str], kept: set[str]) -> None:
    assert set(trim(TREE, patterns)) == kept


def test_setuid_bits_never_survive() -> None:
    assert trim(TREE, ["usr/bin/tool"])["usr/bin/tool"].mode == 0o755
    assert select(TREE, ["usr/bin/tool"])["usr/bin/tool"].mode == 0o755


def test_every_pattern_that_matches_nothing_is_named_at_once() -> None:
    with pytest.raises(TrimError, match=r"'absent/\*' matches nothing; pattern 'usr/bin/tol' matches nothing"):
        trim(TREE, ["usr/bin/tol", "usr/bin/tool", "absent/*"])


def test_a_keep_list_has_comments_and_blank_lines() -> None:
    assert parse_keep_list("# all of it\n\nusr/bin/tool   # the tool\n!usr/bin/x\n") == ("usr/bin/tool", "!usr/bin/x")


def test_the_dynamic_section_of_a_real_program_is_read() -> None:
    linkage = read_linkage(ELF_OF_THIS_TEST.read_bytes())
    assert linkage is not None
    assert "libc.so.6" in linkage.needed
    assert linkage.interpreter.startswith("/lib")


@pytest.mark.parametrize(
    "data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(64)], ids=["empty", "script", "32-bit"]
)
def test_other_files_have_no_linkage(data: bytes) -> None:
    assert read_linkage(data) is None


def test_libraries_come_along_with_their_links_and_the_loader() -> None:
    program = regular(ELF_OF_THIS_TEST.read_bytes())
    linkage = read_linkage(program.read())
    assert linkage is not None
    folder = "usr/lib/x86_64-linux-gnu"
    libraries = {f"{folder}/{name}": symlink(f"{name}.real") for name in linkage.needed}
    libraries |= {f"{folder}/{name}.real": regular(b"library") for name in linkage.needed}
    files = {"usr/bin/program": program, **libraries, linkage.interpreter.strip("/"): regular(b"loader")}
    assert set(trim(rooted(files), ["usr/bin/program"])) - {"lib64", "lib"} == set(files)
    assert unresolved(rooted(files)) == []


def test_a_library_that_is_not_there_is_named() -> None:
    tree = rooted({"usr/bin/program": regular(ELF_OF_THIS_TEST.read_bytes())})
    with pytest.raises(TrimError, match=r"usr/bin/program needs libc\.so\.6, which is not there"):
        trim(tree, ["usr/bin/program"])
    assert "usr/bin/program needs libc.so.6" in unresolved(tree)
