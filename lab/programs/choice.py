# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs the user has named, remembered in the cache. What is asked of a program is in named.py."""

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
    """Remember each NAME=PATH, forget each NAME=; all or, when one is refused, none."""
    wanted = dict(map(parse_named, words))
    if not wanted:
        return
    chosen = {each.name: each for each in _read(cache)}
    chosen = {name: each for name, each in chosen.items() if name not in wanted}
    chosen |= {name: examine(name, path) for name, path in wanted.items() if path is not None}
    check_kubernetes(chosen.values())
    _write(cache, chosen.values())


def recall(cache: Cache) -> list[Named]:
    """What the user has named, by name. A file that has changed since, as a new build does, is examined again."""
    known = _read(cache)
    found = [each if stamp_of(each.name, each.path) == each.stamp else examine(each.name, each.path) for each in known]
    if found != known:
        check_kubernetes(found)
        _write(cache, found)
    return found


def _read(cache: Cache) -> list[Named]:
    try:
        items: list[dict[str, Any]] = json.loads(cache.named_programs.read_text())
        return [Named(**{**item, "path": Path(item["path"])}) for item in items]
    except FileNotFoundError:
        return []
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"{cache.named_programs} is damaged ({error}); remove it, and name the programs again"
        ) from error


def _write(cache: Cache, named: Iterable[Named]) -> None:
    items = [{**asdict(each), "path": str(each.path)} for each in sorted(named, key=lambda each: each.name)]
    cache.root.mkdir(parents=True, exist_ok=True)
    partial = cache.named_programs.with_name(f".programs.{os.getpid()}")
    partial.write_text(json.dumps(items, indent=1))
    partial.replace(cache.named_programs)
