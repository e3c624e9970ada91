# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides whether programs are built again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import SOURCES, Cache
from lab.programs import build
from lab.programs.toolchain import EXACT
from lab.progress import silent

PINS = {
    "k8s.io/kubernetes": build.KUBERNETES,
    "go.etcd.io/etcd/server/v3": build.ETCD,
    "github.com/containerd/containerd/v2": build.CONTAINERD,
    "github.com/containernetworking/plugins": build.CNI,
    "github.com/coredns/coredns": build.COREDNS,
}


@pytest.mark.parametrize("module", build.MODULES, ids=lambda module: module.name)
def test_hash_changes_with_a_source_and_with_nothing_else(module: build.Module, tmp_path: Path) -> None:
    copy = shutil.copytree(SOURCES / module.name, tmp_path / "copy")
    assert build.source_hash(module, copy) == build.source_hash(module, SOURCES / module.name)
    (copy / "go.sum").write_text("")
    assert build.source_hash(module, copy) != build.source_hash(module, SOURCES / module.name)


def test_versions_we_report_are_those_we_build() -> None:
    text = "\n".join((SOURCES / module.name / "go.mod").read_text() for module in build.MODULES)
    found = dict(re.findall(r"(\S+) v(\d+\.\d+\.\d+)(?:\s|$)", text))
    assert {name: found[name] for name in PINS} == PINS


def test_no_module_asks_for_a_newer_go_than_we_fetch() -> None:
    for module in build.MODULES:
        (wanted,) = re.findall(r"^go (\S+)$", (SOURCES / module.name / "go.mod").read_text(), re.MULTILINE)
        assert tuple(map(int, wanted.split("."))) <= EXACT


def test_nothing_is_built_when_everything_is_there(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    for module in build.MODULES:
        (cache.programs / f"{module.name}-{build.source_hash(module, SOURCES / module.name)}").mkdir(parents=True)
    programs = build.ensure_programs(cache, silent)
    assert programs.kube("kubelet").parent.is_dir()
    assert not cache.locks.exists()


def test_full_disk_is_told_before_the_build_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(LabError, match=r"MiB free at .*; free some space"):
        build.ensure_programs(Cache(root=tmp_path), silent)
