# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Type checks of variables, as a template sees them."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
from ansible_collections.virtops.kubevirt.plugins.filter._misused import FilterModule

NAMES = {"type": "list", "choices": ["a", "b"]}
LIMITED = {"type": "int", "least": 1, "most": 9}
TIME = {"type": "str", "like": "([0-9.]+(ms|s|m|h))+", "example": "1m30s", "scale": "time", "most": "24h"}
SIZE = {"type": "str", "like": "[0-9.]+[A-Z]?i?", "example": "64Gi", "scale": "size", "least": "1Mi", "most": "64Ti"}
TEXTS = {"type": "list", "elements": "str"}
ADDRESSES = {"type": "list", "elements": "str", "like": "https://[a-z.]+", "example": "https://a.example"}
MAPPINGS = {"type": "list", "elements": "dict"}


def problems_of(kind: dict[str, Any], **variables: Any) -> list[str]:
    environment = jinja2.Environment()
    environment.filters.update(FilterModule().filters())
    problems: list[str] = environment.compile_expression("{'x': kind} | _misused")(kind=kind, **variables)
    return problems


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(({"type": "bool"}, value) for value in (True, False, "true", "False", "yes", "OFF", "1", 0)),
        *(({"type": "int"}, value) for value in (0, -1, "12", " 3 ")),
        (LIMITED, "9"),
        ({"type": "str"}, "any"),
        ({"type": "str", "choices": ["a", "b"]}, "a"),
        ({"type": "raw", "like": "[0-9]+%?", "example": "25%"}, 1),
        (NAMES, ["b"]),
        (NAMES, ["b", "a"]),
        *((TIME, value) for value in ("0s", "24h", "23h59m60s", "1440m", "1500ms", "0.5h")),
        *((SIZE, value) for value in ("1Mi", "1048576", "64Ti", "65536Gi", "70T", "1.5Gi")),
        (TEXTS, ["a", 1]),
        (ADDRESSES, ["https://b.example"]),
        (ADDRESSES, []),
        (MAPPINGS, [{"a": 1}]),
        (NAMES, []),
        ({"type": "dict"}, {"a": 1}),
        ({"type": "dict"}, {}),
    ],
)
def test_the_right_type_is_accepted(kind: dict[str, Any], value: object) -> None:
    assert problems_of(kind, x=value) == []


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ({"type": "dict"}, None, "x is empty: give it {} for none, or leave it out for the default"),
        (NAMES, None, "x is empty: give it [] for none, or leave it out for the default"),
        ({"type": "bool"}, None, "x is empty: give it a value, or leave it out for the default"),
        ({"type": "bool"}, "maybe", "x must be true or false, not 'maybe'"),
        ({"type": "bool"}, "y", "x must be true or false, not 'y'"),
        ({"type": "bool"}, "", "x must be true or false, not ''"),
        ({"type": "int"}, "\u0662", "x must be a number, not '\u0662'"),
        ({"type": "int"}, "1.5", "x must be a number, not '1.5'"),
        ({"type": "int"}, True, "x must be a number, not 'True'"),
        (LIMITED, "10", "x must be a number from 1 to 9, not '10'"),
        (LIMITED, [1], "x must be a number from 1 to 9, not a list or a mapping"),
        ({"type": "str", "choices": ["a", "b"]}, "c" * 99, f"x must be one of a, b, not '{'c' * 60}'"),
        ({"type": "str"}, ["a"], "x must be a text, not a list or a mapping"),
        ({"type": "raw", "like": "[0-9]+%?", "example": "25%"}, "many", "x must be like 25%, not 'many'"),
        (NAMES, ["a", "c"], "x must have only a, b, not 'c'"),
        (ADDRESSES, ["b.example"], "x must have only texts like https://a.example, not 'b.example'"),
        (ADDRESSES, [{}], "x must have only texts like https://a.example, not '{}'"),
        (NAMES, ["a", "b", "a"], "x must have each of a, b at most once"),
        *((TIME, value, f"x must be like 1m30s, to 24h, not '{value}'") for value in ("25h", "24h1ms", "1440.1m")),
        *(
            (SIZE, value, f"x must be like 64Gi, from 1Mi to 64Ti, not '{value}'")
            for value in ("1048575", "65Ti", "1M")
        ),
        (SIZE, "large", "x must be like 64Gi, not 'large'"),
        ({"type": "int"}, "9" * 5000, f"x must be a number, not '{'9' * 60}'"),
        (SIZE, "9" * 5000, f"x must be like 64Gi, from 1Mi to 64Ti, not '{'9' * 60}'"),
        (TEXTS, ["a", {"b": 1}], "x must have only texts, not \"{'b': 1}\""),
        (TEXTS, [None], "x must have only texts, not 'None'"),
        (MAPPINGS, ["a=b"], "x must have only mappings, not 'a=b'"),
        (NAMES, "a", """x must be a list, which with -e is written as JSON: -e '{"x": ...}'"""),
        ({"type": "dict"}, ["a"], """x must be a mapping, which with -e is written as JSON: -e '{"x": ...}'"""),
    ],
)
def test_the_wrong_type_is_reported(kind: dict[str, Any], value: object, words: str) -> None:
    assert problems_of(kind, x=value) == [words]


def test_an_unset_variable_is_not_checked() -> None:
    assert problems_of({"type": "bool"}) == []


def test_a_variable_that_refers_to_an_unset_one_is_not_checked() -> None:
    assert problems_of({"type": "bool"}, x=jinja2.StrictUndefined(name="later")) == []
