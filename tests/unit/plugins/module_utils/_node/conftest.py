# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts in place of the programs of container runtimes: they record their calls and answer from a file."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_SCRIPT = """#!{python}
import json, os, sys
from pathlib import Path
here, name = Path({folder!r}), {name!r}
typed = sys.stdin.readline().rstrip("\\n") if "--user" in sys.argv else ""
call = [name, *sys.argv[1:]]
with (here / "calls").open("a") as stream:
    stream.write(json.dumps([call, typed, os.environ.get("CRICTL_CREDS", "")]) + "\\n")
for verb in sys.argv[1:]:
    for kind in ("fails", "says"):
        answer = here / f"{{name}}.{{verb}}.{{kind}}"
        if answer.exists():
            print(answer.read_text(), file=sys.stderr if kind == "fails" else sys.stdout)
            sys.exit(7 if kind == "fails" else 0)
"""


@dataclass
class Node:
    """A folder of programs. calls: the command lines; typed, creds: other input of the last call."""

    folder: Path

    def has(self, program: str) -> None:
        path = self.folder / program
        path.write_text(_SCRIPT.format(python=sys.executable, folder=str(self.folder), name=program))
        path.chmod(0o755)

    def says(self, program: str, verb: str, text: str) -> None:
        (self.folder / f"{program}.{verb}.says").write_text(text)

    def fails(self, program: str, verb: str, text: str) -> None:
        (self.folder / f"{program}.{verb}.fails").write_text(text)

    def passes(self, program: str, verb: str) -> None:
        (self.folder / f"{program}.{verb}.fails").unlink()

    def _lines(self) -> list[tuple[list[str], str, str]]:
        path = self.folder / "calls"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def calls(self) -> list[str]:
        return [" ".join(call) for call, _unused, _unused in self._lines()]

    @property
    def typed(self) -> str:
        return self._lines()[-1][1]

    @property
    def creds(self) -> str:
        return self._lines()[-1][2]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node without any runtime."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CRICTL_CREDS", raising=False)
    return Node(folder)
