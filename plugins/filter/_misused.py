# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private filter _misused: variables with a value of the wrong kind, one sentence for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context, missing

DOCUMENTATION = r"""
name: _misused
short_description: Internal, list variables whose value is of the wrong kind
author:
  - virtops (@virtops)
description:
  - For the roles and playbooks of this collection only. It may change in any release.
  - Takes the kind of value that variables must have, and returns a text for each variable that has another one.
  - A variable that is not set, or that needs a variable that is not set yet, is not checked.
  - An empty variable (null) is wrong.
  - Role P(virtops.kubevirt.control_plane#role) refuses such variables with it. An argument spec checks the options of
    its role when the role starts; this filter checks the options of all roles before the first role changes anything,
    and does not turn a text into a list.
options:
  _input:
    description:
      - What each variable must be, by its name. C(type) as in the argument spec of a role; C(choices); for a number
        C(least) and C(most); for a list C(elements) (V(str) or V(dict)); for a text, and for each text of
        a list, C(like), a regular expression, with an C(example).
      - For a text that is a time (V(1m30s)) or a size (V(64Gi)), C(scale) (V(time) or V(size)), C(least) and C(most).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Say what is wrong with a variable of the command line
  ansible.builtin.debug:
    msg: "{{ {'kubevirt_become': {'type': 'bool'}} | virtops.kubevirt._misused }}"
    # ["kubevirt_become must be true or false, not 'maybe'"]
"""

RETURN = r"""
_value:
  description: A text for each variable of the wrong kind, in their order.
  type: list
  elements: str
"""

_SHOWN = 60
"""Characters of a wrong value that a message shows. No valid time or size is longer."""
_EMPTY = {"list": "[] for none", "dict": "{} for none"}
_BOOLEANS = ("true", "yes", "on", "1", "false", "no", "off", "0")
"""The words that the filter bool knows. It reads any other word as false."""
_SHAPES = {"list": (list, "a list"), "dict": (dict, "a mapping")}
_ELEMENTS = {"str": ((str, int, float), "texts"), "dict": (dict, "mappings")}
_UNITS: dict[str, dict[str, Fraction | int]] = {
    "time": {"ms": Fraction(1, 1000), "s": 1, "m": 60, "h": 3600},
    "size": {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGT", 1)}}
    | {f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)},
}


@pass_context
def misused(context: Context, wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a text for each variable with a value of the wrong kind."""
    texts = []
    for name, kind in wanted.items():
        value = _value(context, name)
        problem = None if value is missing else _problem(str(name), value, kind)
        if problem:
            texts.append(f"{name} {problem}")
    return texts


def _value(context: Context, name: str) -> Any:
    """Return the value of a variable; `missing` if it, or a variable that it uses, is not set."""
    try:
        value = context.resolve_or_missing(name)
    except (
        Exception
    ):  # the exception differs between versions of Ansible; the task that uses the variable reports the error
        return missing
    return missing if isinstance(value, Undefined) else value


def _problem(name: str, value: Any, kind: Mapping[str, Any]) -> str | None:
    if value is None:
        return f"is empty: give it {_EMPTY.get(kind['type'], 'a value')}, or leave it out for the default"
    if kind["type"] in _SHAPES:
        return _collection_problem(name, value, kind)
    expected = _CHECKS[kind["type"]](value, kind)
    if expected is None:
        return None
    actual = "a list or a mapping" if isinstance(value, (list, dict)) else repr(str(value)[:_SHOWN])
    return f"must be {expected}, not {actual}"


def _check_bool(value: Any, _kind: Mapping[str, Any]) -> str | None:
    return None if str(value).lower() in _BOOLEANS else "true or false"


def _check_int(value: Any, kind: Mapping[str, Any]) -> str | None:
    if re.fullmatch(rf"\s*[+-]?[0-9]{{1,{_SHOWN}}}\s*", str(value)) and _is_in_range(int(str(value)), kind, int):
        return None
    return f"a number{_range(kind)}"


def _check_text(value: Any, kind: Mapping[str, Any]) -> str | None:
    if kind.get("choices") and value not in kind["choices"]:
        return f"one of {', '.join(kind['choices'])}"
    if kind.get("like") and not re.fullmatch(kind["like"], str(value)):
        return f"like {kind['example']}"
    scale = kind.get("scale")
    if scale and not (len(value) <= _SHOWN and _is_in_range(_amount(value, scale), kind, lambda x: _amount(x, scale))):
        return f"like {kind['example']},{_range(kind)}"
    return "a text" if isinstance(value, (list, dict)) else None


_CHECKS = {"bool": _check_bool, "int": _check_int, "str": _check_text, "raw": _check_text}
"""Functions that return None for a valid value, and otherwise what a value must be."""


def _is_in_range(amount: Any, kind: Mapping[str, Any], parse: Callable[[Any], Any]) -> bool:
    minimum, maximum = kind.get("least"), kind.get("most")
    return (minimum is None or parse(minimum) <= amount) and (maximum is None or amount <= parse(maximum))


def _range(kind: Mapping[str, Any]) -> str:
    return "".join(f" {word} {kind[key]}" for word, key in (("from", "least"), ("to", "most")) if key in kind)


def _amount(value: Any, scale: str) -> Fraction:
    """Return a time in seconds or a size in bytes."""
    parts = re.findall("([0-9.]+)([a-zA-Z]*)", str(value))
    return sum((Fraction(number) * _UNITS[scale][unit] for number, unit in parts), Fraction(0))


def _collection_problem(name: str, value: Any, kind: Mapping[str, Any]) -> str | None:
    shape, noun = _SHAPES[kind["type"]]
    if not isinstance(value, shape):
        return f"must be {noun}, which with -e is written as JSON: -e '{{\"{name}\": ...}}'"
    wrong = [item for item in value if not _is_element(item, kind)]
    if wrong:
        example = f" like {kind['example']}" if kind.get("like") else ""
        allowed = ", ".join(kind.get("choices") or [_ELEMENTS[kind["elements"]][1] + example])
        return f"must have only {allowed}, not {str(wrong[0])[:_SHOWN]!r}"
    if kind.get("choices") and len(value) > len(kind["choices"]):
        return f"must have each of {', '.join(kind['choices'])} at most once"
    return None


def _is_element(item: Any, kind: Mapping[str, Any]) -> bool:
    if kind.get("choices"):
        return item in kind["choices"]
    if kind.get("like") and not re.fullmatch(kind["like"], str(item)):
        return False
    return not kind.get("elements") or isinstance(item, _ELEMENTS[kind["elements"]][0])


class FilterModule:
    """The class that Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filter."""
        return {"_misused": misused}
