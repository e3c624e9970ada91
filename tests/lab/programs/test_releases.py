# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other minor versions of Kubernetes: what is built, and when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import Cache
from lab.programs import ensure, releases
from lab.programs.ensure import ensure_programs
from lab.programs.modules import KUBERNETES, MINOR
from lab.programs.releases import RELEASES, kube_directory, kube_module, release_of, requirements
from lab.progress import Progress, silent


def test_the_labs_own_minor_version_is_its_own_release() -> None:
    assert release_of(MINOR) == KUBERNETES
    assert all(release.rpartition(".")[0] == minor for minor, release in RELEASES.items())


def test_an_unknown_minor_version_is_refused_with_those_that_exist() -> None:
    with pytest.raises(LabError, match=r"Kubernetes 1\.20: the lab can run 1\.33, 1\.34, "):
        release_of("1.20")


def test_staging_modules_are_required_at_the_number_of_the_release() -> None:
    text = requirements("1.35.4", ["k8s.io/client-go", "k8s.io/api", "k8s.io/api"], (1, 26, 8))
    assert re.findall(r"^\t(\S+ \S+)$", text, re.MULTILINE) == [
        "k8s.io/api v0.35.4",
        "k8s.io/client-go v0.35.4",
        "k8s.io/kubernetes v1.35.4",
    ]
    assert "\ngo 1.26.8\n" in text


def test_each_release_has_a_directory_and_reports_its_own_version(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    names = {kube_directory(release, cache).name for release in RELEASES.values()}
    assert len(names) == len(RELEASES)
    assert "gitVersion=v1.33.13 " in kube_module("1.33.13", cache).linker_flags


def test_only_kubernetes_is_built_again_for_another_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, built = Cache(root=tmp_path), list[str]()

    def build_release(release: str, cache: Cache, progress: Progress) -> None:
        built.append(release)
        kube_directory(release, cache).mkdir(parents=True)

    def build(module: object, target: Path, cache: Cache, progress: Progress) -> None:
        built.append(target.name.partition("-")[0])
        target.mkdir(parents=True)

    monkeypatch.setattr(releases, "build_release", build_release)
    monkeypatch.setattr(ensure, "build", build)
    for _run in range(2):
        programs = ensure_programs(cache, silent, kubernetes="1.35")
    assert built == ["etcd", "node", "1.35.4"]
    assert programs.kube("kubelet").parent == kube_directory("1.35.4", cache)
