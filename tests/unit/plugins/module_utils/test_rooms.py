# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The import contracts of plugins/module_utils: which package may import which, and no cycles between files.

Not in .importlinter: it needs importable packages, and cannot follow relative imports above module_utils.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

UTILS = Path(__file__).resolve().parents[4] / "plugins/module_utils"
FILES = {".".join(path.relative_to(UTILS).with_suffix("").parts): path for path in sorted(UTILS.rglob("*.py"))}
PACKAGES: dict[str, set[str]] = {
    "kubevirt_api": set(),
    "libvirt_domain": set(),
    "seed_image": set(),
    "_client": set(),
    "_node": {"_client"},
    "_cluster": {"_client", "kubevirt_api"},
    "_vm": {"_client", "kubevirt_api"},
    "_migration": {"_client", "_vm", "kubevirt_api"},
    "_service": {"_client", "_vm", "kubevirt_api"},
    "_console": {"_client", "_vm", "kubevirt_api"},
    "_port_forward": {"_client", "_vm", "kubevirt_api"},
}
"""What each package may import."""
VM_LAYERS = (
    ("batch", "multi", "read"),
    ("wait",),
    ("write",),
    ("request",),
    ("merge",),
    ("members", "unread_instance", "guest_access", "console_log", "transcript", "kinds", "field_path", "missing"),
)
"""Packages and files of _vm, from the top: each imports from its own layer and those below."""


def imports(name: str) -> Iterator[str]:
    """Yield the module_utils files that a file imports anywhere, also inside functions."""
    parts = tuple(name.split("."))
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = parts[: len(parts) - node.level] + tuple((node.module or "").split(".") if node.module else ())
        for alias in node.names:
            module = ".".join((*base, alias.name))
            yield module if module in FILES else ".".join(base)


GRAPH = {name: set(imports(name)) for name in FILES}


def test_every_import_of_the_collection_is_relative_and_exists() -> None:
    assert not [name for name, path in FILES.items() if "ansible_collections" in path.read_text()]
    assert {target for targets in GRAPH.values() for target in targets} <= FILES.keys()


def test_there_are_no_import_cycles() -> None:
    TopologicalSorter(GRAPH).prepare()  # raises CycleError


def test_every_package_has_a_contract() -> None:
    assert {path.name for path in UTILS.iterdir() if (path / "__init__.py").exists()} == PACKAGES.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    own = [name for name in FILES if name.startswith(f"{package}.")]
    others = {(name, target) for name in own for target in GRAPH[name] if target.partition(".")[0] != package}
    assert {edge for edge in others if edge[1].partition(".")[0] not in PACKAGES[package]} == set()


def test_a_package_of_vm_imports_only_its_own_layer_and_those_below() -> None:
    layer_of = {room: index for index, layer in enumerate(VM_LAYERS) for room in layer}
    names = [name for name in FILES if name.startswith("_vm.") and name != "_vm.__init__"]
    edges = {(name, target) for name in names for target in GRAPH[name] if target.startswith("_vm.")}

    def layer(name: str) -> int:
        return layer_of[name.split(".")[1]]

    assert {(name, target) for name, target in edges if layer(name) > layer(target)} == set()


def test_an_init_file_imports_nothing_of_ours() -> None:
    """It would load files that most tasks do not need."""
    assert {name: GRAPH[name] for name in FILES if name.endswith("__init__") and GRAPH[name]} == {}
