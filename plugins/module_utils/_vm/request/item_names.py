# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of list items that a task may have misspelt: it then warns, with the names that are there. Pure.

A removal of an item that does not exist changes nothing, as with any object that is to be absent. A change of an item
that does not exist adds one; the server refuses a disk without a volume, but not a volume without a disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..field_path import Path, value_at
from ..kinds import Kind
from ..merge import overlay
from ..merge.keyed_lists import KEYS, key_of
from . import manifest, shape

_REMEDY = "look at its name, or leave the entry out"

Object = dict[str, Any]


class Removal(NamedTuple):
    """An item that a task removes."""

    field: str
    """The list as the task wrote it, such as disks, or spec: domain.devices.gpus."""
    path: Path
    """The list in the object."""
    name: str


def removals_of(params: Mapping[str, Any], kind: Kind) -> tuple[Removal, ...]:
    """Return the items that options remove, except those that another option of the task declares."""
    found, declared = [], set()
    for field, path, item in _items(params, kind):
        name = key_of(path, item) or ""
        if overlay.removes(item, path):
            found.append(Removal(field, path, name))
        else:
            declared.add((path, name))
    return tuple(removal for removal in found if (removal.path, removal.name) not in declared)


def not_removed(title: str, removals: tuple[Removal, ...], before: Object | None) -> list[str]:
    """Return a warning for each removed item that the object did not have. before: the object before the task."""
    texts = []
    for field, path, name in removals:
        names = _names(before, path)
        if name not in names:
            texts.append(f"{title}: {field}: there is no {name} to remove ({_known(names)}); {_REMEDY}")
    return texts


def not_used(title: str, volumes: list[str], after: Object, kind: Kind) -> list[str]:
    """Return a warning for each of these volumes, which no disk uses. after: the object after the task."""
    known = _known(_names(after, kind.inside(shape.DISKS)))
    return [
        f"{title}: volumes: nothing uses {name}, because there is no disk of that name ({known}); {_REMEDY}"
        for name in volumes
    ]


def _names(obj: Object | None, path: Path) -> list[str]:
    return [key_of(path, item) or "" for item in value_at(obj, path) or ()]


def _known(names: list[str]) -> str:
    return f"there are: {', '.join(names)}" if names else "the list is empty"


def _items(params: Mapping[str, Any], kind: Kind) -> Iterator[tuple[str, Path, Any]]:
    """Yield each item of a named list, with the list as the task wrote it and the list's path in the object."""
    written: list[tuple[str, Path]] = [("definition", ())]
    written += [(option, kind.inside(path)) for option, (path, make) in manifest.OPTIONS.items() if make is None]
    for option, where in written:
        for path in KEYS if params.get(option) else ():
            if path[: len(where)] == where:
                inner = ".".join(path[len(where) :])
                for item in value_at(params[option], path[len(where) :]) or ():
                    yield f"{option}: {inner}" if inner else option, path, item
