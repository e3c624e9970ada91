# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON nested deeper than the decoder accepts. How a cache treats such an object: test_watch."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.kube.decoding import CUT_LEVELS, MAX_LEVELS, UnreadableError, cut, is_deeper, read_event

SIGNS = ['"', "\\", "{", "}", "[", "]", ",", ":", " ", "a", "\n", "é", '\\"']


def random_value(chance: random.Random, levels: int) -> Any:
    """Return a JSON value whose strings look like structure."""
    kind = chance.choice(("text", "number", "null", "list", "object")) if levels else "text"
    if kind == "list":
        return [random_value(chance, levels - 1) for _unused in range(chance.randrange(4))]
    if kind == "object":
        return {random_text(chance): random_value(chance, levels - 1) for _unused in range(chance.randrange(4))}
    return {"text": random_text(chance), "number": chance.random() - 0.5, "null": None}[kind]


def random_text(chance: random.Random) -> str:
    return "".join(chance.choices(SIGNS, k=chance.randrange(6)))


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


def pruned(value: Any, levels: int) -> Any:
    """Replace what lies below `levels` by None."""
    if isinstance(value, dict):
        return {name: pruned(member, levels - 1) for name, member in value.items()} if levels else None
    if isinstance(value, list):
        return [pruned(element, levels - 1) for element in value] if levels else None
    return value


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_cut_replaces_exactly_the_values_below_the_limit(seed: int) -> None:
    chance = random.Random(seed)
    value = [random_value(chance, 4) for _unused in range(chance.randrange(5))]
    for shape in ({}, {"indent": 1}, {"separators": (",", ":"), "ensure_ascii": False}):
        raw = json.dumps(value, **shape).encode()
        for levels in range(1, 6):
            assert json.loads(cut(raw, levels)) == pruned(value, levels)
            assert is_deeper(raw, levels) == (depth(value) > levels)


@pytest.mark.parametrize("half", [b'{"a[[[', b'{"a\\"[[[', b'{"a[[[\\'], ids=repr)
def test_brackets_in_an_unterminated_string_are_no_structure(half: bytes) -> None:
    assert not is_deeper(half, 1)
    assert cut(half, 1) == half


def test_no_depth_is_too_much() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000

    assert is_deeper(deep, 99_999)
    assert not is_deeper(deep, 100_000)
    assert depth(json.loads(cut(deep))) == CUT_LEVELS


async def test_the_object_of_a_cut_event_is_still_too_deep_for_a_cache() -> None:
    kind, raw = await read_event(b'{"type":"ADDED","object":{"a":%s}}' % (b"[" * 20_000 + b"]" * 20_000))

    assert kind == "ADDED"
    assert is_deeper(raw, MAX_LEVELS)


@pytest.mark.parametrize(
    "line", [b"", b"<html>", b"[]", b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b'{"a":' * 9000]
)
async def test_a_line_that_is_no_event_is_unreadable(line: bytes) -> None:
    with pytest.raises(UnreadableError):
        await read_event(line)
