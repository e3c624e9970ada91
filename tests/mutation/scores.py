# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded scores, and the outcomes that stay valid after a file has changed."""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.mutants import VERSION, generate
from tests.mutation.targets import ROOT, find_files, find_tests

SCORES = Path(__file__).with_name("scores.json")
SIMILAR = 0.6
"""Share of lines in common from which a file counts as a recorded one that was renamed."""


@dataclass(frozen=True, slots=True)
class Record:
    score: int
    """The floor: percent of the mutants that the tests killed, rounded down."""
    killed: int
    mutants: int
    commit: str
    source: str
    """Git's name of the content that was mutated."""
    tests: str
    """Digest of the test files that ran."""
    survived: tuple[int, ...]
    """Indices into the generated mutants."""


def read() -> dict[str, Record]:
    """Return path -> record; nothing when the operators have changed since."""
    if not SCORES.exists():
        return {}
    recorded = json.loads(SCORES.read_text())
    if recorded["version"] != VERSION:
        return {}
    return {
        path: Record(**{**entry, "survived": tuple(entry["survived"])}) for path, entry in recorded["files"].items()
    }


def write(records: dict[str, Record]) -> None:
    """Write the records of files that still exist, and name the files without one."""
    files = find_files()
    lines = [f"    {json.dumps(path)}: {json.dumps(asdict(records[path]))}" for path in files if path in records]
    absent = json.dumps([path for path in files if path not in records])
    SCORES.write_text(
        f'{{\n  "version": {VERSION},\n  "absent": {absent},\n  "files": {{\n' + ",\n".join(lines) + "\n  }\n}\n"
    )


def make_record(path: str, outcomes: dict[int, bool], before: Record | None) -> Record:
    """Record a complete run. A higher floor stays."""
    killed = sum(outcomes.values())
    percent = percent_of(killed, len(outcomes))
    survived = tuple(index for index, is_killed in sorted(outcomes.items()) if not is_killed)
    floor = max(percent, before.score if before else 0)
    return Record(
        floor, killed, len(outcomes), git("rev-parse", "--short=12", "HEAD").strip(), blob(path), digest(path), survived
    )


def percent_of(killed: int, mutants: int) -> int:
    return 100 * killed // mutants if mutants else 100


def blob(path: str) -> str:
    return git("hash-object", "--", path).strip()


def digest(path: str) -> str:
    """Return a digest of the test files of a file."""
    content = b"".join((ROOT / test).read_bytes() for test in find_tests(path))
    return hashlib.sha256(content).hexdigest()[:12]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def recorded_source(record: Record) -> str | None:
    """Return the text that was mutated; None when this clone does not hold it."""
    try:
        return git("cat-file", "blob", record.source)
    except subprocess.CalledProcessError:
        return None


def find_record(path: str, records: dict[str, Record]) -> Record | None:
    """Return a file's record, also when the file has been renamed since."""
    if path in records:
        return records[path]
    lines = (ROOT / path).read_text().splitlines()
    for old_path, record in records.items():
        if (ROOT / old_path).exists():
            continue
        old = recorded_source(record)
        if old is not None and difflib.SequenceMatcher(None, old.splitlines(), lines).ratio() > SIMILAR:
            return record
    return None


def known_outcomes(old: str | None, new: str, survived: tuple[int, ...]) -> dict[int, bool]:
    """Return index -> killed for the mutants of a new text whose lines are as they were in the old one."""
    if old is None:
        return {}
    old_lines, new_lines = old.splitlines(), new.splitlines()
    line_before = {
        block.b + offset + 1: block.a + offset + 1
        for block in difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_matching_blocks()
        for offset in range(block.size)
    }
    outcomes: dict[tuple[int, str], list[bool]] = {}
    for index, mutant in enumerate(generate(ast.parse(old))):
        outcomes.setdefault((mutant.lines[0], mutant.text), []).append(index not in survived)
    known = {}
    for index, mutant in enumerate(generate(ast.parse(new))):
        recorded = outcomes.get((line_before.get(mutant.lines[0], 0), mutant.text))
        if recorded:
            known[index] = recorded.pop(0)
    return known
