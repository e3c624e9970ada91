# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that the user has named, stored in the cache. named.py checks a program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.paths import Cache
from lab.programs.named import Named, check_kubernetes, examine, parse_named, stamp_of


def choose(cache: Cache, words: Iterable[str]) -> None:
    """Store each NAME=PATH, remove each NAME=. If one is refused, nothing changes."""
    choices = dict(map(parse_named, words))
    if not choices:
        return
    chosen = {program.name: program for program in _read(cache)}
    chosen = {name: program for name, program in chosen.items() if name not in choices}
    chosen |= {name: examine(name, path) for name, path in choices.items() if path is not None}
    check_kubernetes(chosen.values())
    _write(cache, chosen.values())


def recall(cache: Cache) -> list[Named]:
    """Return the named programs, sorted by name. A changed file, such as a new build, is examined again."""
    stored = _read(cache)
    current = [
        program if stamp_of(program.name, program.path) == program.stamp else examine(program.name, program.path)
        for program in stored
    ]
    if current != stored:
        check_kubernetes(current)
        _write(cache, current)
    return current


def _read(cache: Cache) -> list[Named]:
    try:
        items: list[dict[str, Any]] = json.loads(cache.named_programs.read_text())
        return [Named(**{**values, "path": Path(values["path"])}) for values in items]
    except FileNotFoundError:
        return []
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"{cache.named_programs} is damaged ({error}); remove it, and name the programs again"
        ) from error


def _write(cache: Cache, named: Iterable[Named]) -> None:
    items = [
        {**asdict(program), "path": str(program.path)} for program in sorted(named, key=lambda program: program.name)
    ]
    cache.root.mkdir(parents=True, exist_ok=True)
    partial = cache.named_programs.with_name(f".programs.{os.getpid()}")
    partial.write_text(json.dumps(items, indent=1))
    partial.replace(cache.named_programs)
