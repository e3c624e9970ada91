# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import random
from typing import Any

import pytest

from controlplane.kube.shallow import elements, is_deeper, members, text

SIGNS = ['"', "\\", "{", "}", "[", "]", ",", ":", " ", "a", "\n", "é", '\\"']


def anything(chance: random.Random, levels: int) -> Any:
    """A JSON value whose texts look like structure."""
    kind = chance.choice(("text", "number", "null", "list", "object")) if levels else "text"
    if kind == "list":
        return [anything(chance, levels - 1) for _unused in range(chance.randrange(4))]
    if kind == "object":
        return {a_text(chance): anything(chance, levels - 1) for _unused in range(chance.randrange(4))}
    return {"text": a_text(chance), "number": chance.random() - 0.5, "null": None}[kind]


def a_text(chance: random.Random) -> str:
    return "".join(chance.choices(SIGNS, k=chance.randrange(6)))


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


@pytest.mark.parametrize("seed", range(200))
def test_the_outermost_level_is_what_a_decoder_finds(seed: int) -> None:
    chance = random.Random(seed)
    listed = [anything(chance, 4) for _unused in range(chance.randrange(5))]
    named = {a_text(chance): one for one in listed}
    for shape in ({}, {"indent": 1}, {"separators": (",", ":"), "ensure_ascii": False}):
        assert [json.loads(one) for one in elements(json.dumps(listed, **shape).encode())] == listed
        found = members(json.dumps(named, **shape).encode())
        assert {name: json.loads(value) for name, value in found.items()} == named
        for levels in range(6):
            assert is_deeper(json.dumps(listed, **shape).encode(), levels) == (depth(listed) > levels)


@pytest.mark.parametrize("raw", [b"", b"1", b'"[1]"', b"{}", b"[", b"[1", b'["', b"[[]"], ids=repr)
def test_what_is_no_list_is_told(raw: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        elements(raw)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"{1:2}", b'{"a"}', b'{"a":1', b'{"\xff":1}'], ids=repr)
def test_what_is_no_object_is_told(raw: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        members(raw)


@pytest.mark.parametrize("raw", [b"1", b"[" * 20_000, b"null"], ids=["number", "depth", "null"])
def test_what_is_no_text_is_told(raw: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        text(raw)


@pytest.mark.parametrize("half", [b'{"a', b'{"a\\', b'{"a\\"', b'{"a[[[', b'{"a" ', b'{"a":"', b'{"a":1,"b'], ids=repr)
def test_half_an_object_is_told(half: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        members(half)


@pytest.mark.parametrize("half", [b'{"a[[[', b'{"a\\"[[[', b'{"a[[[\\'], ids=repr)
def test_what_is_in_a_text_is_no_structure_though_the_text_has_no_end(half: bytes) -> None:
    assert not is_deeper(half, 1)


def test_depth_is_no_matter() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000

    assert members(b'{"a": %s , "b":1}' % deep) == {"a": deep, "b": b"1"}
    assert is_deeper(deep, 99_999)
    assert not is_deeper(deep, 100_000)
