# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outermost level of JSON, however deep the rest goes. For what the decoder refuses.

API servers store 10,000 levels, our decoder gives up at the interpreter's limit, also in what it only skips. Nothing in
here calls itself, and each byte is looked at once. It is some fifty times slower than the decoder, and no judge: what
comes in is what an API server wrote, so that it is JSON, or the half of it that was sent before it ended.
"""

from __future__ import annotations

import re
from itertools import accumulate

import msgspec

_TEXT = rb'"(?:[^"\\]++|\\.)*+"?+'
"""One that has no end goes on to the end of all: or each quote in it would be tried as its beginning."""
_TEXTS = re.compile(_TEXT, re.DOTALL)
_TOKENS = re.compile(_TEXT + rb"|[\[\]{},]", re.DOTALL)
_NAME = re.compile(rb"\A\s*+(" + _TEXT + rb")\s*+:", re.DOTALL)
_OTHER_THAN_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_deeper(raw: bytes, levels: int) -> bool:
    """Tell whether objects and lists stand in one another deeper than so."""
    if raw.count(b"{") + raw.count(b"[") <= levels:  # so it is with nearly every object, and costs next to nothing
        return False
    brackets = _TEXTS.sub(b"", raw).translate(None, _OTHER_THAN_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > levels


def elements(raw: bytes) -> list[bytes]:
    """Return the elements of a list, as they were written. Raises ValueError for what is none."""
    return _split(raw, b"[")


def members(raw: bytes) -> dict[str, bytes]:
    """Return the values of an object by name, as they were written. Raises ValueError for what is none."""
    found = {}
    for member in _split(raw, b"{"):
        name = _NAME.match(member)
        if name is None:
            raise ValueError("not a JSON object")
        found[text(name[1])] = member[name.end() :].strip()
    return found


def text(raw: bytes) -> str:
    """Decode a string. Raises ValueError for what is none."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not a JSON string") from error


def _split(raw: bytes, opening: bytes) -> list[bytes]:
    if raw.lstrip()[:1] != opening:
        raise ValueError(f"no JSON that begins with {opening!r}")
    parts, level, start = [], 0, 0
    for token in _TOKENS.finditer(raw):
        sign = raw[token.start()]
        level += _STEP.get(sign, 0)
        if level == 1 and sign in opening:
            start = token.end()
        elif level == 0 or (level == 1 and sign == ord(",")):
            parts.append(raw[start : token.start()])
            start = token.end()
        if level == 0:
            return parts if parts[-1].strip() else parts[:-1]
    raise ValueError("the JSON ends too soon")
