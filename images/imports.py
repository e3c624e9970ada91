# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the files of this project that a process imports, by reading import statements. Nothing is imported.

So an image contains exactly the files that its process needs, without a list to maintain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_DATA_SUFFIXES = (".json", ".yml", ".yaml", ".xml")


def files_of(packages: Mapping[str, Path], entries: Iterable[str]) -> dict[str, Path]:
    """Return the files of every module reachable from the entry packages, by their path below the import root.

    packages: top-level package name -> its directory. entries: packages (with all their modules) or modules.
    Includes the data files beside a reachable module. ValueError names an entry that does not exist.
    """
    modules = dict(_modules(packages))
    pending = [name for entry in entries for name in _entry(entry, modules)]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name in reached or name not in modules:
            continue
        reached.add(name)
        pending += _parents(name)
        pending += _imports(name, modules[name])
    files = {_place(name, modules[name]): modules[name] for name in reached}
    for name in list(reached):
        files.update(_data_beside(name, modules[name]))
    return dict(sorted(files.items()))


def _modules(packages: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    for top, root in packages.items():
        for path in root.rglob("*.py"):
            parts = (top, *path.relative_to(root).with_suffix("").parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _entry(entry: str, modules: Mapping[str, Path]) -> list[str]:
    names = [name for name in modules if name == entry or name.startswith(f"{entry}.")]
    if not names:
        raise ValueError(f"there is no package {entry} to put into an image")
    return names


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imports(name: str, path: Path) -> Iterator[str]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _place(name: str, path: Path) -> str:
    inside = name.replace(".", "/")
    return f"{inside}/__init__.py" if path.name == "__init__.py" else f"{inside}.py"


def _data_beside(name: str, path: Path) -> dict[str, Path]:
    if path.name != "__init__.py":
        return {}
    files = (file for file in path.parent.iterdir() if file.suffix in _DATA_SUFFIXES)
    return {f"{name.replace('.', '/')}/{file.name}": file for file in files}
