# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduce a distribution's root file system to the content of an image: named files and the libraries that they need.

A keep-list has one shell pattern per line. `!pattern` excludes files, the last matching line decides, `#` starts a
comment, `*` also matches slashes. Libraries are resolved like the dynamic linker does, by reading ELF headers, so no
program of the image runs. Setuid and setgid bits are removed.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import posixpath
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from images.tree import Node, Tree, resolve

LIBRARY_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib")
"""Search path of Debian's dynamic linker, without its cache."""

_MERGED = ("bin", "sbin", "lib", "lib64")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


class TrimError(ValueError):
    """A keep-list does not fit the root file system. The text names every such pattern and library."""


@dataclass(frozen=True, slots=True)
class Linkage:
    """Instructions of an ELF file for the dynamic linker."""

    needed: tuple[str, ...] = ()
    run_paths: tuple[str, ...] = ()
    interpreter: str = ""


def parse_keep_list(text: str) -> tuple[str, ...]:
    """Return the patterns of a keep-list."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def trim(tree: Tree, patterns: Sequence[str]) -> dict[str, Node]:
    """Return the part of a root file system that the patterns match, with the libraries that it links to.

    Raises TrimError if a pattern matches nothing (a changed package, a misspelt word) or a library is missing.
    """
    chosen, unmatched = _match(tree, patterns)
    result: dict[str, Node] = {name: tree[name] for name in _MERGED if name in tree}
    missing = [f"pattern {pattern!r} matches nothing" for pattern in unmatched]
    pending = list(chosen)
    while pending:
        name = pending.pop()
        if name in result:
            continue
        resolved = resolve(tree, name)
        if resolved is None:
            missing.append(f"{name} leads nowhere")
            continue
        real, links = resolved
        result.update({link: tree[link] for link in links})
        if real in result:
            continue
        result[real] = _without_privilege(tree[real])
        if tree[real].kind == "file":
            libraries, absent = _libraries(tree, real)
            pending += libraries
            missing += [f"{real} needs {soname}, which is not there" for soname in absent]
    if missing:
        raise TrimError("cannot trim the root file system: " + "; ".join(sorted(missing)))
    return result


def select(tree: Tree, patterns: Sequence[str]) -> dict[str, Node]:
    """Return the part of a tree that the patterns match. Raises TrimError if a pattern matches nothing."""
    chosen, idle = _match(tree, patterns)
    if idle:
        raise TrimError("; ".join(f"pattern {pattern!r} matches nothing" for pattern in idle))
    return {name: _without_privilege(tree[name]) for name in chosen}


def unresolved(tree: Tree) -> list[str]:
    """Return messages about libraries that files of a tree need and that are not in the tree."""
    return sorted(
        f"{name} needs {soname}"
        for name, node in tree.items()
        if node.kind == "file"
        for soname in _libraries(tree, name)[1]
    )


def _match(tree: Tree, patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    rules = [(line.lstrip("!"), not line.startswith("!")) for line in patterns]
    compiled = [(re.compile(fnmatch.translate(pattern)), keep) for pattern, keep in rules]
    used: set[int] = set()
    chosen = []
    for name in tree:
        verdict = False
        for position, (expression, keep) in enumerate(compiled):
            if expression.match(name):
                used.add(position)
                verdict = keep
        if verdict:
            chosen.append(name)
    # A "!" line may match nothing: the unwanted files do not exist.
    unmatched = [pattern for position, (pattern, keep) in enumerate(rules) if keep and position not in used]
    return chosen, unmatched


def _without_privilege(node: Node) -> Node:
    return dataclasses.replace(node, mode=node.mode & 0o1777, owner=0)


def _libraries(tree: Tree, name: str) -> tuple[list[str], list[str]]:
    """Return the paths of the libraries of a file, and the names of missing libraries."""
    if tree[name].read(4) != b"\x7fELF":
        return [], []
    linkage = read_linkage(tree[name].read())
    if linkage is None:
        return [], []
    origin = posixpath.dirname(name)
    own = [path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin).strip("/") for path in linkage.run_paths]
    paths, absent = [], []
    for soname in linkage.needed:
        path = _find_library(tree, soname, [*own, *LIBRARY_DIRECTORIES])
        if path is None:
            absent.append(soname)
        else:
            paths.append(path)
    if linkage.interpreter:
        paths.append(linkage.interpreter.strip("/"))
    return paths, absent


def _find_library(tree: Tree, soname: str, directories: Iterable[str]) -> str | None:
    candidates = (posixpath.normpath(posixpath.join(directory, soname)) for directory in directories)
    return next((path for path in candidates if resolve(tree, path) is not None), None)


def read_linkage(data: bytes) -> Linkage | None:
    """Read the dynamic section of a 64-bit little-endian ELF file. None for other files and static programs."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, table + size * index) for index in range(count)]
    loads = [
        (vaddr, offset, filesz)
        for kind, _unused, offset, vaddr, _unused, filesz, _unused, _unused in segments
        if kind == _PT_LOAD
    ]
    dynamic = [
        (offset, filesz)
        for kind, _unused, offset, _unused, _unused, filesz, _unused, _unused in segments
        if kind == _PT_DYNAMIC
    ]
    interpreters = [offset for kind, _unused, offset, *_unused in segments if kind == _PT_INTERP]
    if not dynamic:
        return None
    offset, length = dynamic[0]
    tags = list(struct.iter_unpack("<qQ", data[offset : offset + length - length % 16]))
    strings = next((value for tag, value in tags if tag == _DT_STRTAB), 0)
    base = next((at + strings - vaddr for vaddr, at, filesz in loads if vaddr <= strings < vaddr + filesz), strings)

    def texts(*kinds: int) -> tuple[str, ...]:
        return tuple(_text(data, base + value) for tag, value in tags if tag in kinds)

    run_paths = tuple(path for joined in texts(_DT_RUNPATH, _DT_RPATH) for path in joined.split(":"))
    return Linkage(texts(_DT_NEEDED), run_paths, _text(data, interpreters[0]) if interpreters else "")


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()
