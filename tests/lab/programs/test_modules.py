# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs that cause a new build, and the pins."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lab.paths import SOURCES
from lab.programs import modules
from lab.programs.toolchain import EXACT

PINS = {
    "k8s.io/kubernetes": modules.KUBERNETES,
    "go.etcd.io/etcd/server/v3": modules.ETCD,
    "github.com/containerd/containerd/v2": modules.CONTAINERD,
    "github.com/containernetworking/plugins": modules.CNI,
    "github.com/coredns/coredns": modules.COREDNS,
}


@pytest.mark.parametrize("module", modules.MODULES, ids=lambda module: module.name)
def test_the_hash_depends_only_on_the_sources(module: modules.Module, tmp_path: Path) -> None:
    copy = shutil.copytree(SOURCES / module.name, tmp_path / "copy")
    assert modules.source_hash(module, copy) == modules.source_hash(module, SOURCES / module.name)
    (copy / "go.sum").write_text("")
    assert modules.source_hash(module, copy) != modules.source_hash(module, SOURCES / module.name)


def test_reported_versions_are_the_pinned_ones() -> None:
    text = "\n".join((SOURCES / module.name / "go.mod").read_text() for module in modules.MODULES)
    found = dict(re.findall(r"(\S+) v(\d+\.\d+\.\d+)(?:\s|$)", text))
    assert {name: found[name] for name in PINS} == PINS


def test_no_module_needs_a_newer_go_than_the_fetched_one() -> None:
    for module in modules.MODULES:
        (wanted,) = re.findall(r"^go (\S+)$", (SOURCES / module.name / "go.mod").read_text(), re.MULTILINE)
        assert tuple(map(int, wanted.split("."))) <= EXACT


def test_a_shared_dependency_has_one_version() -> None:
    """Then it is compiled once. Another version also recompiles all packages that import it."""
    versions: dict[str, set[str]] = {}
    for module in modules.MODULES:
        text = (SOURCES / module.name / "go.mod").read_text()
        required = dict(re.findall(r"^\s+(\S+) (v\S+)", text, re.MULTILINE))
        for name, version in (required | dict(re.findall(r"(\S+) => \S+ (v\S+)", text))).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
