# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape that a declaration must have for the module to work with it; the API server checks the rest. Pure."""

from __future__ import annotations

from typing import Any

from ..._client.errors import NOT_TEXT, BadArgument
from ..field_path import Path
from ..kinds import POOL_TEMPLATE
from ..merge import overlay
from ..merge.keyed_lists import KEYS, key_of

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
    *_VMS, ("spec", "domain"), ("spec", "domain", "devices"), POOL_TEMPLATE,
    *((*POOL_TEMPLATE, *path) for path in _VMS),
    ("spec", "nameGeneration"), ("spec", "scaleInStrategy"), ("spec", "updateStrategy"),
)  # fmt: skip
_NEVER_NULL = frozenset(
    {
        *_MACHINES, ("spec", "domain"), ("spec", "domain", "devices"), POOL_TEMPLATE, (*POOL_TEMPLATE, "spec"),
        *((*POOL_TEMPLATE, *path) for path in _MACHINES),
    }
)  # fmt: skip
"""Fields that a machine needs. A null there does not mean a removal; it is an empty YAML key by mistake."""

Object = dict[str, Any]


def check(option: str, value: Any, where: Path = ()) -> None:
    """Raise BadArgument for the first field of a wrong shape. where: the path of the value in the object."""
    for path in _MAPPINGS:
        field = _inside(value, where, path)
        if field is not _MISSING and not isinstance(field, dict):
            _check_mapping(_title(option, where, path), path, field)
    for path in KEYS:
        field = _inside(value, where, path)
        if field is not _MISSING and field is not None:
            _check_items(_title(option, where, path), path, field)


def lay(declared: Object, fragment: Object, option: str) -> Object:
    """Return a declaration with an option's fragment merged into it. Raises BadArgument if the shapes do not fit."""
    try:
        merged: Object = overlay.over_declared(declared, fragment)
    except overlay.Mismatch as mismatch:
        raise BadArgument(
            f"{option} cannot be laid over {mismatch}, which is {kind_of(mismatch.below)}: a mapping is needed there;"
            f" write one, or leave out {mismatch.path[-1]} and use only the option"
        ) from mismatch
    return merged


def texts(option: str, values: Any) -> dict[str, Any]:
    """Return a mapping of texts, such as labels and annotations. Raises BadArgument for other values."""
    if not isinstance(values, dict):
        raise BadArgument(f"{option} is not a mapping")
    wrong = [key for key, value in values.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise BadArgument(f"{option}[{wrong[0]}]: {NOT_TEXT}")
    return values


def kind_of(value: Any) -> str:
    """Return the kind of a value in words, without the value, which may be a secret."""
    if isinstance(value, bool):
        return "true or false"
    for kind, name in ((dict, "a mapping"), (list, "a list"), (str, "a text"), ((int, float), "a number")):
        if isinstance(value, kind):
            return name
    return "empty"


_MISSING: Any = object()


def _inside(value: Any, where: Path, path: Path) -> Any:
    if path[: len(where)] != where:
        return _MISSING
    for step in path[len(where) :]:
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _title(option: str, where: Path, path: Path) -> str:
    inner = ".".join(path[len(where) :])
    return f"{option}: {inner}" if inner else option


def _check_mapping(title: str, path: Path, value: Any) -> None:
    if value is not None:
        raise BadArgument(f"{title} is not a mapping but {kind_of(value)}; write its fields below it, as key: value")
    if path in _NEVER_NULL:
        raise BadArgument(f"{title} is empty; write its fields below it, or leave {path[-1]} out")


def _check_items(title: str, path: Path, value: Any) -> None:
    if not isinstance(value, list):
        raise BadArgument(f"{title} is not a list but {kind_of(value)}; begin each item with a dash")
    key, names = ".".join(KEYS[path]), set()
    for index, item in enumerate(value):
        name = key_of(path, item)
        if name is None:
            raise BadArgument(f"{title}[{index}]: the item has no {key}; items are matched by it, so give it one")
        if name in names:
            raise BadArgument(f"{title}[{index}]: {key} {name!r} is there twice; join the two")
        names.add(name)
