# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: an error is one sentence, the exit code is 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import paths
from lab.__main__ import main, split_command


@pytest.fixture(autouse=True)
def _no_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "STATE_ROOT", tmp_path)
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["status"], "there is no lab 'virtops'; start it with `lab up --name virtops`"),
        (["kubeconfig", "--name", "other"], "there is no lab 'other'"),
        (["node", "kill", "node-1"], "there is no lab 'virtops'"),
        (["node", "exec", "node-1"], "give a command after --"),
        (["status", "--name", "../x"], "lab name '../x'"),
        (["image", "import", "/absent.tar"], "/absent.tar: no such file"),
    ],
    ids=" ".join,
)
def test_an_error_is_printed_without_a_traceback(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert text in capsys.readouterr().err


def test_words_after_two_dashes_belong_to_the_command() -> None:
    assert split_command(["node", "exec", "n", "--", "ls", "--", "-l"]) == (["node", "exec", "n"], ["ls", "--", "-l"])
    assert split_command(["up", "--nodes", "3"]) == (["up", "--nodes", "3"], [])
