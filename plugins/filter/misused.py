# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter misused: variables whose value is of another kind than it must be, each in a sentence that names it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context, missing

DOCUMENTATION = r"""
name: misused
short_description: Choose variables whose value is of the wrong kind, and say what is wanted
version_added: 0.1.0
author:
  - virtops (@virtops)
description:
  - Takes what kind of value variables are to have, and returns a text for each that has another.
  - A variable that is not set, or that is made of one that is not set yet, is not judged.
  - One that is left empty (null) is wrong.
  - Role P(virtops.kubevirt.control_plane#role) refuses such variables with it.
options:
  _input:
    description:
      - By the names of variables, what is wanted. C(type), as in an argument spec of a role, and beside it C(choices),
        of a number C(least) and C(most), of a list C(elements) (V(str) or V(dict)), of a text C(like), a regular
        expression with C(example).
      - Of a text that is a time (V(1m30s)) or a size (V(64Gi)), as C(scale) says (V(time) or V(size)), C(least) and
        C(most) too.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Say what is wrong with what was given on the command line
  ansible.builtin.debug:
    msg: "{{ {'kubevirt_become': {'type': 'bool'}} | virtops.kubevirt.misused }}"
    # ["kubevirt_become is to be true or false, not 'maybe'"]
"""

RETURN = r"""
_value:
  description: A text for each variable of the wrong kind, in their order.
  type: list
  elements: str
"""

_LONGEST = 60
_NOTHING = {"list": "[] for none", "dict": "{} for none"}
_TRUTHS = ("true", "yes", "on", "1", "false", "no", "off", "0")
"""What the filter bool takes for what it says, in any case; all else is false to it."""


@pass_context
def misused(context: Context, wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a text for each variable that has not the wanted kind of value."""
    found = []
    for name, kind in wanted.items():
        value = _value(context, name)
        problem = None if value is missing else _problem(str(name), value, kind)
        if problem:
            found.append(f"{name} {problem}")
    return found


def _value(context: Context, name: str) -> Any:
    """Return what a variable is here; `missing` where it is not set, or needs one that is not."""
    try:
        value = context.resolve_or_missing(name)
    except Exception:  # older versions of Ansible raise what is theirs; who uses the variable is told
        return missing
    return missing if isinstance(value, Undefined) else value


def _problem(name: str, value: Any, kind: Mapping[str, Any]) -> str | None:
    if value is None:
        return f"is left empty: give it {_NOTHING.get(kind['type'], 'a value')}, or leave it out for the default"
    if kind["type"] in _SHAPES:
        return _structure(name, value, kind)
    wants = _SCALARS[kind["type"]](value, kind)
    if wants is None:
        return None
    return f"{wants}, not {'more than that' if isinstance(value, (list, dict)) else repr(str(value)[:_LONGEST])}"


def _bool(value: Any, _kind: Mapping[str, Any]) -> str | None:
    return None if str(value).lower() in _TRUTHS else "is to be true or false"


def _int(value: Any, kind: Mapping[str, Any]) -> str | None:
    if re.fullmatch(r"\s*[+-]?[0-9]{1,60}\s*", str(value)) and _is_within(int(str(value)), kind, int):
        return None
    return " ".join(["is to be a number", *_ends(kind)])


def _is_within(amount: Any, kind: Mapping[str, Any], read: Callable[[Any], Any]) -> bool:
    least, most = kind.get("least"), kind.get("most")
    return (least is None or read(least) <= amount) and (most is None or amount <= read(most))


def _ends(kind: Mapping[str, Any]) -> list[str]:
    return [f"{word} {kind[end]}" for word, end in (("from", "least"), ("to", "most")) if kind.get(end) is not None]


def _str(value: Any, kind: Mapping[str, Any]) -> str | None:
    if kind.get("choices") and value not in kind["choices"]:
        return f"is to be one of {', '.join(kind['choices'])}"
    if kind.get("like") and not re.fullmatch(kind["like"], str(value)):
        return f"is to be like {kind['example']}"
    if kind.get("scale") and not _is_scaled(str(value), kind, kind["scale"]):
        return " ".join([f"is to be like {kind['example']},", *_ends(kind)])
    return "is to be a text" if isinstance(value, (list, dict)) else None


def _is_scaled(value: str, kind: Mapping[str, Any], scale: str) -> bool:
    """Tell whether an amount is within its ends. Python reads no number of thousands of digits."""
    return len(value) <= _LONGEST and _is_within(_amount(value, scale), kind, lambda end: _amount(end, scale))


def _amount(value: Any, scale: str) -> Fraction:
    parts = re.findall("([0-9.]+)([a-zA-Z]*)", str(value))
    return sum((Fraction(number) * _SCALES[scale][unit] for number, unit in parts), Fraction(0))


def _structure(name: str, value: Any, kind: Mapping[str, Any]) -> str | None:
    shape, what = _SHAPES[kind["type"]]
    if not isinstance(value, shape):
        return f"is to be {what}, which with -e is written as JSON: -e '{{\"{name}\": ...}}'"
    wrong = [one for one in value if not _is_element(one, kind)]
    if wrong:
        allowed = ", ".join(kind.get("choices") or [_ELEMENTS[kind["elements"]][1]])
        return f"is to have nothing but {allowed}, not {str(wrong[0])[:_LONGEST]!r}"
    if kind.get("choices") and len(value) > len(kind["choices"]):
        return f"is to have each of {', '.join(kind['choices'])} once at most"
    return None


def _is_element(one: Any, kind: Mapping[str, Any]) -> bool:
    if kind.get("choices"):
        return one in kind["choices"]
    return not kind.get("elements") or isinstance(one, _ELEMENTS[kind["elements"]][0])


_SCALARS = {"bool": _bool, "int": _int, "str": _str, "raw": _str}
_ELEMENTS = {"str": ((str, int, float), "texts"), "dict": (dict, "mappings")}
_SCALES: dict[str, dict[str, Fraction | int]] = {
    "time": {"ms": Fraction(1, 1000), "s": 1, "m": 60, "h": 3600},
    "size": {
        "": 1,
        "k": 10**3,
        "M": 10**6,
        "G": 10**9,
        "T": 10**12,
        "Ki": 2**10,
        "Mi": 2**20,
        "Gi": 2**30,
        "Ti": 2**40,
    },
}
_SHAPES = {"list": (list, "a list"), "dict": (dict, "a mapping")}


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filter."""
        return {"misused": misused}
