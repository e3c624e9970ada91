# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab's programs: built ones, named ones, and what a second call repeats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.paths import SOURCES, Cache
from lab.programs import ensure
from lab.programs.choice import choose
from lab.programs.ensure import KEPT_COPIES, ensure_programs
from lab.programs.modules import KUBE_PROGRAMS, MODULES, Module, source_hash
from lab.progress import Progress, silent

WriteProgram = Callable[[str, str], Path]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(root=tmp_path / "cache")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the built modules. A fake build writes one small file per program."""
    names: list[str] = []

    def build(module: Module, target: Path, cache: Cache, progress: Progress) -> None:
        names.append(module.name)
        target.mkdir(parents=True)
        for program in module.programs:
            (target / program).write_text("built")

    monkeypatch.setattr(ensure, "build", build)
    return names


def test_missing_programs_are_built_once(cache: Cache, built: list[str]) -> None:
    first = ensure_programs(cache, silent)
    assert built == [module.name for module in MODULES]
    assert ensure_programs(cache, silent) == first
    assert built == [module.name for module in MODULES]
    assert first.kube_directory.name == f"kube-{source_hash(MODULES[2], SOURCES / 'kube')}"


def test_no_lock_is_taken_if_all_programs_exist(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    for module in MODULES:
        (cache.programs / f"{module.name}-{source_hash(module, SOURCES / module.name)}").mkdir(parents=True)
    programs = ensure_programs(cache, silent)
    assert programs.kube("kubelet").parent.is_dir()
    assert not cache.locks.exists()


def test_a_named_program_replaces_the_built_one(cache: Cache, built: list[str], a_program: WriteProgram) -> None:
    before = ensure_programs(cache, silent)
    path = a_program("mine", "Kubernetes v1.36.5")
    choose(cache, [f"kubelet={path}"])
    programs = ensure_programs(cache, silent)
    assert programs.kube("kubelet").read_text() == path.read_text()
    assert programs.named == {"kubelet": f"{path} (1.36.5)"}
    assert programs.kube("kubectl") == before.kube("kubectl"), "an unchanged program is not restarted"
    assert before.kube("kubelet").read_text() == "built", "another lab runs it"
    choose(cache, ["kubelet="])
    assert ensure_programs(cache, silent) == before


def test_each_new_build_at_a_path_is_another_copy_and_old_copies_are_removed(
    cache: Cache, built: list[str], a_program: WriteProgram
) -> None:
    """Another path is another command line, by which `lab up` sees what to restart."""
    seen = []
    for patch in range(KEPT_COPIES + 2):
        path = a_program("mine", f"Kubernetes v1.36.{10 + patch}")
        choose(cache, [f"kubelet={path}"])
        programs = ensure_programs(cache, silent)
        assert f"1.36.{10 + patch}" in programs.kube("kubelet").read_text()
        seen.append(programs.kube("kubelet"))
    assert len(set(seen)) == len(seen)
    assert sum(path.exists() for path in seen) == KEPT_COPIES
    assert seen[-1].exists()


def test_copies_of_a_program_with_a_longer_name_are_kept(
    cache: Cache, built: list[str], a_program: WriteProgram
) -> None:
    choose(cache, [f"containerd-shim-runc-v2={a_program('shim', 'Version:  v2.3.7')}"])
    for patch in range(KEPT_COPIES + 1):
        answer = f"containerd github.com/containerd/containerd/v2 v2.3.{10 + patch} x"
        choose(cache, [f"containerd={a_program('mine', answer)}"])
        programs = ensure_programs(cache, silent)
    assert programs.node("containerd-shim-runc-v2").exists()


def test_a_module_is_not_built_if_all_its_programs_are_named(
    cache: Cache, built: list[str], a_program: WriteProgram
) -> None:
    etcd = a_program("etcd", "etcd Version: 3.6.4")
    kube = a_program("kube", "Kubernetes v1.36.5\nClient Version: v1.36.5")
    choose(cache, [f"etcd={etcd}", *(f"{name}={kube}" for name in KUBE_PROGRAMS)])
    programs = ensure_programs(cache, silent)
    assert built == ["node"]
    assert programs.etcd.read_text() == etcd.read_text()


def test_runc_is_the_hosts_unless_it_is_named(cache: Cache, built: list[str], a_program: WriteProgram) -> None:
    assert ensure_programs(cache, silent).runc is None
    path = a_program("runc-1.2", "runc version 1.2.6")
    choose(cache, [f"runc={path}"])
    runc = ensure_programs(cache, silent).runc
    assert runc is not None
    assert runc.name == "runc"
    assert runc.read_text() == path.read_text()
