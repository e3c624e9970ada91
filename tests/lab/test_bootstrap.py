# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The development environment: one collection out of a wheel of many."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from lab import bootstrap
from tests.bench import ans_noop


def a_wheel(folder: Path, *names: str) -> Path:
    wheel = folder / "ansible-1.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "new")
    return wheel


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_only_the_collection_and_its_licence_are_unpacked(tmp_path: Path) -> None:
    wanted = {f"ansible_collections/kubernetes/core/{name}" for name in ("LICENSE", "plugins/modules/k8s.py")}
    others = {"ansible_collections/kubernetes/core_ng/a.py", "ansible_collections/amazon/aws/a.py", "ansible/a.py"}

    bootstrap.take_collection(a_wheel(tmp_path, *wanted, *others), tmp_path / "site")

    assert files_below(tmp_path / "site") == wanted


def test_files_of_another_version_are_removed(tmp_path: Path) -> None:
    old = tmp_path / "site/ansible_collections/kubernetes/core/plugins/modules/gone.py"
    old.parent.mkdir(parents=True)
    old.write_text("old")

    bootstrap.take_collection(a_wheel(tmp_path, "ansible_collections/kubernetes/core/LICENSE"), tmp_path / "site")

    assert files_below(tmp_path / "site") == {"ansible_collections/kubernetes/core/LICENSE"}


def test_a_wheel_without_the_collection_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(bootstrap.BootstrapError, match=r"ansible-1\.whl does not hold"):
        bootstrap.take_collection(a_wheel(tmp_path, "ansible/a.py"), tmp_path / "site")


def test_an_installed_collection_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("a program was run")

    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(subprocess, "run", refuse)
    (tmp_path / ".collections").write_text(bootstrap.COLLECTIONS.read_text())

    bootstrap.bring_collections()


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that make_venv runs, without their programs."""
    ran: list[list[str]] = []

    def run(command: list[str]) -> None:
        tmp_path.joinpath("venv").mkdir(exist_ok=True)
        ran.append(command)

    monkeypatch.setattr(bootstrap, "VENV", tmp_path / "venv")
    monkeypatch.setattr(bootstrap, "WHOLE_STAMP", tmp_path / "venv/.pins")
    monkeypatch.setattr(bootstrap, "PART_STAMP", tmp_path / "venv/.pins-quickstart")
    monkeypatch.setattr(bootstrap, "_run", run)
    return ran


def test_quickstart_installs_its_part_and_the_rest_is_added_later(commands: list[list[str]]) -> None:
    bootstrap.make_venv(is_whole=False)
    bootstrap.make_venv(is_whole=False)
    assert [command[2] if "--clear" in command else command[5] for command in commands] == ["venv"] + ["install"] * 2
    assert not [command for command in commands if "--requirement" in command]
    del commands[:]

    bootstrap.make_venv(is_whole=True)
    bootstrap.make_venv(is_whole=False)
    (command,) = commands
    assert "--requirement" in command


def test_an_environment_of_another_checkout_is_not_replaced(commands: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "venv").symlink_to(tmp_path / "other")
    with pytest.raises(bootstrap.BootstrapError, match="remove the link"):
        bootstrap.make_venv(is_whole=True)
    assert commands == []


def test_changed_pins_replace_the_environment(commands: list[list[str]]) -> None:
    bootstrap.make_venv(is_whole=True)
    for stamp in (bootstrap.WHOLE_STAMP, bootstrap.PART_STAMP):
        stamp.write_text("other pins")
    del commands[:]

    bootstrap.make_venv(is_whole=True)

    assert "--clear" in commands[0]


def test_the_pin_has_a_hash_and_equals_the_benchmarks_peer() -> None:
    (pin,) = [line for line in bootstrap.COLLECTIONS.read_text().splitlines() if not line.startswith("#")]

    assert re.fullmatch(rf"{re.escape(ans_noop.PEER[0])} --hash=sha256:[0-9a-f]{{64}}", pin)


@pytest.mark.parametrize(
    ("arguments", "is_new", "begins"),
    [([], True, False), (["--quickstart"], True, True), (["--quickstart"], False, False)],
)
def test_a_first_quickstart_begins_to_compile_while_packages_are_installed(
    arguments: list[str], is_new: bool, begins: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / "new" if is_new else tmp_path)
    monkeypatch.setattr(bootstrap, "missing_packages", lambda _packages: [])
    monkeypatch.setattr(bootstrap, "start_build", lambda: steps.append("build"))
    monkeypatch.setattr(bootstrap, "make_venv", lambda **_options: steps.append("venv"))
    monkeypatch.setattr(bootstrap, "bring_collections", lambda: steps.append("collections"))

    assert bootstrap.main(arguments) == 0

    assert steps == [*(["build"] if begins else []), "venv", "collections"]
