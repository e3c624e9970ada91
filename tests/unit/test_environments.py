# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments beside .venv: their pins, and their Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests import environments
from ansible_collections.virtops.kubevirt.tests.sanity import run_sanity

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(environments.REQUIREMENTS.glob("*.txt"))


def pins(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if not line.startswith("#")]


def a_program(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_every_package_is_pinned(file: Path) -> None:
    assert [line for line in pins(file) if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


@pytest.mark.parametrize("version", environments.ansible_cores())
def test_an_environment_has_the_version_in_its_name(version: str) -> None:
    (pin,) = (
        line for line in pins(environments.REQUIREMENTS / f"ansible-core-{version}.txt") if "ansible-core" in line
    )

    assert pin.startswith(f"ansible-core=={version}.")


def test_the_oldest_supported_version_is_tested() -> None:
    claimed = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["requires_ansible"]

    assert claimed == f">={environments.ansible_cores()[0]}.0"


def test_a_version_without_a_python_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))

    assert run_sanity.possible_versions() == [
        core for core in environments.ansible_cores() if f"ansible-core-{core}" not in environments.OLDEST
    ]
    assert "no Python here for ansible-core 2.21" in capsys.readouterr().out


def test_the_same_python_by_another_path_does_not_rebuild_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(command: list[str], **_unused: object) -> None:
        if command[1:3] == ["-m", "venv"]:
            Path(command[3], "lib/python3.11/site-packages").mkdir(parents=True)
            made.append(command[3])

    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "run", make)
    first = environments.make("docs")
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert environments.make("docs") == first
    assert made == [str(first)]


def test_a_broken_python_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(tmp_path / "shims" / f"python3.{environments.NEWEST[1]}", "exit 127")
    good = a_program(tmp_path / "versions/3.12.1/bin/python3", f'exec {sys.executable} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))

    assert environments._interpreter((3, 12)) == str(good)


def test_without_a_new_enough_python_the_message_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))

    with pytest.raises(SystemExit, match=r"no Python 3\.12 or newer"):
        environments._interpreter((3, 12))
