# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile Python files with the interpreter of an image, without entering the image.

A container's root is read-only, so Python would compile the remaining files at every start: 0.3 s instead of 0.05 s
for a launcher. Python does not compare the result with its source (`unchecked-hash`): both are in one image.
"""

from __future__ import annotations

import json
import posixpath
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from images.tree import Node, Tree, regular, write_directory
from images.trim import trim

VERSION = "3.13"
"""The version of trixie's Python."""

_SUFFIX = f".cpython-{VERSION.replace('.', '')}.pyc"
_NEEDED = (f"usr/bin/python{VERSION}", f"usr/lib/python{VERSION}/*", f"!usr/lib/python{VERSION}/test/*")
_PROGRAM = """
import json, py_compile, sys
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for source, name, target in json.load(sys.stdin):
    py_compile.compile(source, target, name, doraise=True, invalidation_mode=mode)
"""


class CompileError(Exception):
    """A file does not compile. Carries the interpreter's output."""


def unpack_interpreter(tree: Tree, root: Path) -> list[str]:
    """Unpack the Python of a root file system into a directory, and return the command that runs it there."""
    write_directory(trim(tree, _NEEDED), root)
    return interpreter_command(root)


def interpreter_command(root: Path) -> list[str]:
    """Return the command that runs an unpacked Python with its own libraries."""
    loader, libraries = root / "usr/lib64/ld-linux-x86-64.so.2", root / "usr/lib/x86_64-linux-gnu"
    program = [str(loader), "--library-path", str(libraries), str(root / f"usr/bin/python{VERSION}")]
    return ["/usr/bin/env", f"PYTHONHOME={root / 'usr'}", *program]


def compiled(files: Tree, interpreter: Sequence[str]) -> dict[str, Node]:
    """Return the compiled form of every `.py` file in a tree, under the names that Python expects."""
    sources = {name: node for name, node in files.items() if node.kind == "file" and name.endswith(".py")}
    if not sources:
        return {}
    with tempfile.TemporaryDirectory(prefix="virtops-compile-") as scratch:
        targets = _compile(sources, interpreter, Path(scratch))
        return {name: regular(path.read_bytes()) for name, path in targets.items()}


def _compile(sources: Mapping[str, Node], interpreter: Sequence[str], scratch: Path) -> dict[str, Path]:
    jobs, targets = [], {}
    for index, (name, node) in enumerate(sorted(sources.items())):
        source, target = scratch / f"{index}.py", scratch / f"{index}.pyc"
        source.write_bytes(node.read())
        jobs.append((str(source), f"/{name}", str(target)))
        folder, _unused, module = name.removesuffix(".py").rpartition("/")
        targets[posixpath.join(folder, "__pycache__", module + _SUFFIX)] = target
    command = [*interpreter, "-S", "-s", "-B", "-c", _PROGRAM]
    environment = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}  # the order of sets in compiled files depends on hashes
    done = subprocess.run(command, input=json.dumps(jobs), env=environment, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise CompileError(f"cannot compile for Python {VERSION}: {done.stderr.strip()}")
    return targets
