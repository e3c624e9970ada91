# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All missing requirements are reported at once, with their remedies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.cluster import preflight
from lab.errors import LabError


def test_sudo_is_the_remedy_for_a_user_who_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert any("sudo" in problem for problem in preflight.find_problems())


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_SEARCH", "/nowhere")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError) as caught:
        preflight.check_machine()
    assert "nft, nsenter, runc" in str(caught.value)
    assert "apt-get install" in str(caught.value)
    assert "sudo" in str(caught.value)


def test_a_named_program_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_SEARCH", "/nowhere")
    (reported,) = [problem for problem in preflight.find_problems(own={"runc"}) if "programs are missing" in problem]
    assert "nsenter" in reported
    assert "runc" not in reported


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "NEEDED_BYTES", 1 << 60)
    assert any("MiB free" in problem for problem in preflight.find_problems())


def test_a_kernel_without_overlayfs_and_cgroups_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "filesystems").write_text("nodev\tsysfs\n\text4\n")
    (tmp_path / "self" / "mountinfo").write_text("")
    monkeypatch.setattr(preflight, "_can_load", lambda module: False)
    problems = "\n".join(preflight._missing_kernel_features(tmp_path))
    for word in ("overlayfs", "cgroup namespaces", "no cgroup hierarchy"):
        assert word in problems


@pytest.mark.parametrize(
    ("starting", "needed"),
    [([], 0), (["cp"], 11), (["node-2"], 10), (["cp", "node-1", "node-2"], 31)],
    ids=["nothing", "control plane", "another node", "a lab of two nodes"],
)
def test_a_lab_needs_inotify_instances_for_each_machine_that_it_starts(
    starting: list[str], needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "free_instances", lambda _most: needed)
    preflight.check_inotify(starting)
    monkeypatch.setattr(preflight, "free_instances", lambda _most: needed - 1)
    with pytest.raises(LabError) as caught:
        preflight.check_inotify(starting)
    assert f"needs {needed} inotify instances, and {needed - 1} of " in str(caught.value)
    assert "sysctl -w fs.inotify.max_user_instances=1024" in str(caught.value)


def test_inotify_instances_are_counted_by_creating_them() -> None:
    assert preflight.free_instances(0) == 0
    assert preflight.free_instances(3) == 3
