# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is missing is told with its remedy, all at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.cluster import preflight
from lab.errors import LabError


def test_user_who_is_not_root_is_told_to_use_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_program_that_the_user_has_named_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_SEARCH", "/nowhere")
    (told,) = [problem for problem in preflight.find_problems(own={"runc"}) if "programs are missing" in problem]
    assert "nsenter" in told
    assert "runc" not in told


def test_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "NEEDED_BYTES", 1 << 60)
    assert any("MiB free" in problem for problem in preflight.find_problems())


def test_kernel_without_overlayfs_and_cgroups_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "filesystems").write_text("nodev\tsysfs\n\text4\n")
    (tmp_path / "self" / "mountinfo").write_text("")
    monkeypatch.setattr(preflight, "_can_load", lambda module: False)
    problems = "\n".join(preflight._missing_kernel_features(tmp_path))
    for word in ("overlayfs", "cgroup namespaces", "no cgroup hierarchy"):
        assert word in problems
