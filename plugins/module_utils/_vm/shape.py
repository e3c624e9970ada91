# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shape a declaration must have for the other files to look into it; the rest is the server's to judge. Pure."""

from __future__ import annotations

from typing import Any

from .._client.errors import NOT_TEXT, BadArgument
from .keyed_lists import KEYS, POOLED, Path, key_of

MACHINE: Path = ("spec", "template", "spec")
DOMAIN: Path = (*MACHINE, "domain")
DEVICES: Path = (*DOMAIN, "devices")
DISKS: Path = (*DEVICES, "disks")
VOLUMES: Path = (*MACHINE, "volumes")
ANNOTATIONS: Path = (*MACHINE[:-1], "metadata", "annotations")

_MACHINES: tuple[Path, ...] = (("spec", "template"), MACHINE, DOMAIN, DEVICES)
_VMS: tuple[Path, ...] = (
    ("metadata",), ("spec",), *_MACHINES, ("spec", "template", "metadata"), ("spec", "instancetype"),
    ("spec", "preference"),
)  # fmt: skip
_MAPPINGS: tuple[Path, ...] = (
    *_VMS, ("spec", "domain"), ("spec", "domain", "devices"), POOLED, *((*POOLED, *one) for one in _VMS),
    ("spec", "nameGeneration"), ("spec", "scaleInStrategy"), ("spec", "updateStrategy"),
)  # fmt: skip
_NEVER_NULL = frozenset(
    {
        *_MACHINES, ("spec", "domain"), ("spec", "domain", "devices"), POOLED, (*POOLED, "spec"),
        *((*POOLED, *one) for one in _MACHINES),
    }
)  # fmt: skip
"""A machine cannot be without them, so null (or nothing at all, in YAML) takes nothing away: it is a mistake."""


def check(option: str, value: Any, where: Path = ()) -> None:
    """Raise BadArgument for the first field of another shape; `where` in the object the value belongs."""
    for path in _MAPPINGS:
        found = _inside(value, where, path)
        if found is not _NOTHING and not isinstance(found, dict):
            _check_mapping(_title(option, where, path), path, found)
    for path in KEYS:
        found = _inside(value, where, path)
        if found is not _NOTHING and found is not None:
            _check_items(_title(option, where, path), path, found)


def texts(option: str, values: Any) -> dict[str, Any]:
    """Return a mapping of texts, which labels and annotations are; BadArgument for what is none."""
    if not isinstance(values, dict):
        raise BadArgument(f"{option} is not a mapping")
    wrong = [key for key, value in values.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise BadArgument(f"{option}[{wrong[0]}]: {NOT_TEXT}")
    return values


def kind_of(value: Any) -> str:
    """Return what a value is, without showing it: it may be a secret."""
    if isinstance(value, bool):
        return "true or false"
    for kind, name in ((dict, "a mapping"), (list, "a list"), (str, "a text"), ((int, float), "a number")):
        if isinstance(value, kind):
            return name
    return "empty"


_NOTHING: Any = object()


def _inside(value: Any, where: Path, path: Path) -> Any:
    if path[: len(where)] != where:
        return _NOTHING
    for step in path[len(where) :]:
        if not isinstance(value, dict) or step not in value:
            return _NOTHING
        value = value[step]
    return value


def _title(option: str, where: Path, path: Path) -> str:
    inner = ".".join(path[len(where) :])
    return f"{option}: {inner}" if inner else option


def _check_mapping(title: str, path: Path, found: Any) -> None:
    if found is not None:
        raise BadArgument(f"{title} is not a mapping but {kind_of(found)}; write its fields below it, as key: value")
    if path in _NEVER_NULL:
        raise BadArgument(f"{title} is empty; write its fields below it, or leave {path[-1]} out")


def _check_items(title: str, path: Path, found: Any) -> None:
    if not isinstance(found, list):
        raise BadArgument(f"{title} is not a list but {kind_of(found)}; begin each item with a dash")
    key, seen = ".".join(KEYS[path]), set()
    for index, item in enumerate(found):
        name = key_of(path, item)
        if name is None:
            raise BadArgument(f"{title}[{index}]: an item without a {key}; items are joined by it, so give it one")
        if name in seen:
            raise BadArgument(f"{title}[{index}]: {key} {name!r} is there twice; join the two")
        seen.add(name)
