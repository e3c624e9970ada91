# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay a declaration over another declaration, or over the live object. Pure.

Mappings are merged key by key. Lists that keyed_lists knows are merged item by item and keep their order; other lists
are replaced. A declared field removes the fields that it excludes. Whatever does not change is returned as the same
Python object, which makes the comparison afterwards cheap.
"""

from __future__ import annotations

from typing import Any

from ..field_path import Path, value_at
from .compare import is_equal
from .keyed_lists import ITEM, KEYS, excluded, key_of


class Mismatch(Exception):
    """A mapping is laid over a value that is no mapping."""

    def __init__(self, path: Path, below: Any) -> None:
        super().__init__(".".join(path).replace(f".{ITEM}", ITEM))
        self.path = path
        self.below = below


def over_live(live: Any, declared: Any, path: Path = ()) -> Any:
    """Return the live value with the declaration laid over it. None removes a field, or the item that has only None."""
    return _Overlay(keep_nulls=False).lay(live, declared, path)


def over_declared(below: Any, above: Any, path: Path = ()) -> Any:
    """Return one declaration laid over another. None stays, to remove the live field later. Raises Mismatch."""
    return _Overlay(keep_nulls=True).lay(below, above, path)


class _Overlay:
    def __init__(self, *, keep_nulls: bool) -> None:
        self._keep_nulls = keep_nulls

    def lay(self, below: Any, above: Any, path: Path) -> Any:
        if isinstance(above, dict):
            if isinstance(below, dict):
                return self._mapping(below, above, path)
            if self._keep_nulls and below is not None:
                raise Mismatch(path, below)
            return self._mapping({}, above, path)
        if isinstance(above, list):
            if path in KEYS:
                return self._keyed_list(below if isinstance(below, list) else [], above, path)
            return self._atomic_list(below, above, path)
        return below if below is not None and is_equal(above, below, path) else above

    def _mapping(self, below: dict[str, Any], above: dict[str, Any], path: Path) -> dict[str, Any]:
        merged = dict(below)
        for key in excluded(path, [key for key, value in above.items() if value is not None], below):
            del merged[key]  # the server refuses, for example, two sources of one volume
        for key, value in above.items():
            if value is not None:
                laid = self.lay(merged.get(key), value, (*path, key))
                if laid or key in merged or not value:
                    merged[key] = laid  # else all of the value is to be removed: where it is absent it stays absent
            elif self._keep_nulls:
                merged[key] = None
            else:
                merged.pop(key, None)
        same = len(merged) == len(below) and all(key in below and merged[key] is below[key] for key in merged)
        return below if same else merged

    def _keyed_list(self, below: list[Any], above: list[Any], path: Path) -> list[Any]:
        declared = {key_of(path, item): item for item in above}
        merged = []
        for item in below:
            laid = declared.pop(key_of(path, item), None)
            if laid is None:
                merged.append(item)
            elif removes(laid, path):
                merged += [laid] if self._keep_nulls else []
            else:
                merged.append(self.lay(item, laid, (*path, ITEM)))
        merged.extend(
            self.lay(None, item, (*path, ITEM))
            for item in declared.values()
            if self._keep_nulls or not removes(item, path)
        )
        same = len(merged) == len(below) and all(new is old for new, old in zip(merged, below, strict=True))
        return below if same else merged

    def _atomic_list(self, below: Any, above: list[Any], path: Path) -> list[Any]:
        inside = (*path, ITEM)
        same_length = isinstance(below, list) and len(below) == len(above)
        if same_length and not self._keep_nulls:
            same = all(self.lay(old, new, inside) is old for old, new in zip(below, above, strict=True))
            if same:
                return below  # type: ignore[no-any-return]
        return [self.lay(None, item, inside) for item in above]


def removes(item: Any, path: Path) -> bool:
    """Tell whether an item of the list at `path` has nothing but None beside its key: it is to be removed."""
    rest = [value for key, value in item.items() if key != KEYS[path][0]] if isinstance(item, dict) else []
    return bool(rest) and all(value is None for value in rest)


def has_removals(declared: Any) -> bool:
    """Tell whether a declaration removes an item of a list that keyed_lists knows."""
    return any(
        removes(item, path) for path in KEYS if isinstance(items := value_at(declared, path), list) for item in items
    )
