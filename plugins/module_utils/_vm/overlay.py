# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay a declaration over what is below it: another declaration, or the object that is there. Pure.

Mappings are merged key by key, lists that keyed_lists knows are joined item by item in the order that is below, other
lists are wholes. Naming a field takes those away that it excludes. What is not changed is returned as it is (the same
object), so that the comparison that follows costs nothing.
"""

from __future__ import annotations

from typing import Any

from .compare import is_equal
from .keyed_lists import ITEM, KEYS, Path, excluded, key_of


class Mismatch(Exception):
    """A mapping is laid over something that is none."""

    def __init__(self, path: Path, below: Any) -> None:
        super().__init__(".".join(path).replace(f".{ITEM}", ITEM))
        self.path = path
        self.below = below


def over_live(live: Any, declared: Any, path: Path = ()) -> Any:
    """Return what is there with the declaration laid over it. None takes away; so does an item of nothing but None."""
    return _Layer(keep_nulls=False).over(live, declared, path)


def over_declared(below: Any, above: Any, path: Path = ()) -> Any:
    """Return one declaration laid over another; None stays, because it takes away what is there. Raises Mismatch."""
    return _Layer(keep_nulls=True).over(below, above, path)


class _Layer:
    def __init__(self, *, keep_nulls: bool) -> None:
        self._keep_nulls = keep_nulls

    def over(self, below: Any, above: Any, path: Path) -> Any:
        if isinstance(above, dict):
            if isinstance(below, dict):
                return self._mapping(below, above, path)
            if self._keep_nulls and below is not None:
                raise Mismatch(path, below)
            return self._mapping({}, above, path)
        if isinstance(above, list):
            if path in KEYS:
                return self._joined(below if isinstance(below, list) else [], above, path, is_new=below is None)
            return self._whole(below, above, path)
        return below if below is not None and is_equal(above, below, path) else above

    def _mapping(self, below: dict[str, Any], above: dict[str, Any], path: Path) -> dict[str, Any]:
        merged = dict(below)
        for key in excluded(path, [key for key, value in above.items() if value is not None], below):
            del merged[key]
        for key, value in above.items():
            if value is not None:
                merged[key] = self.over(merged.get(key), value, (*path, key))
            elif self._keep_nulls:
                merged[key] = None
            else:
                merged.pop(key, None)
        same = len(merged) == len(below) and all(key in below and merged[key] is below[key] for key in merged)
        return below if same else merged

    def _joined(self, below: list[Any], above: list[Any], path: Path, *, is_new: bool) -> list[Any]:
        wanted = {key_of(path, item): item for item in above}
        merged = []
        for item in below:
            named = wanted.pop(key_of(path, item), None)
            if named is None:
                merged.append(item)
            elif self._keep_nulls or not _takes_away(named, path):
                merged.append(self.over(item, named, (*path, ITEM)))
        merged.extend(
            self.over(None, named, (*path, ITEM))
            for named in wanted.values()
            if self._keep_nulls or not _takes_away(named, path)
        )
        same = len(merged) == len(below) and all(one is other for one, other in zip(merged, below, strict=True))
        return below if same and not is_new else merged

    def _whole(self, below: Any, above: list[Any], path: Path) -> list[Any]:
        inside = (*path, ITEM)
        as_many = isinstance(below, list) and len(below) == len(above)
        if as_many and not self._keep_nulls:
            is_same = all(self.over(one, other, inside) is one for one, other in zip(below, above, strict=True))
            if is_same:
                return below  # type: ignore[no-any-return]
        return [self.over(None, item, inside) for item in above]


def _takes_away(item: Any, path: Path) -> bool:
    rest = [value for key, value in item.items() if key != KEYS[path][0]] if isinstance(item, dict) else []
    return bool(rest) and all(value is None for value in rest)
