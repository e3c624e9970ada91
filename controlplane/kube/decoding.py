# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode JSON from the API server, however deep it is nested.

API servers store 10,000 levels of nesting, also in managedFields, which no schema bounds. msgspec stops at the
interpreter's recursion limit, also in values that it skips. Such JSON is cut: what lies below CUT_LEVELS becomes null.
Then the other objects of a page can be decoded, and the metadata of the deep object, too. A cut object still has more
than MAX_LEVELS, so no cache mistakes it for the complete object.
"""

from __future__ import annotations

import asyncio
import re
from itertools import accumulate
from typing import TypeVar

import msgspec

NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
MAX_LEVELS = 256
"""How deep an object in a cache may be nested. Legitimate objects have about 20 levels. Subscribers decode, copy and
compare objects from deeper in the stack than a cache, with several calls per level: 1,000 would be too many."""
CUT_LEVELS = MAX_LEVELS + 16

# A text without an end goes on to the end of the input: otherwise each quote in it would be tried as a beginning.
_TEXT = rb'"(?:[^"\\]++|\\.)*+"?+'
_TEXTS = re.compile(_TEXT, re.DOTALL)
_TOKENS = re.compile(_TEXT + rb"|[\[\]{}]", re.DOTALL)
_OTHER_THAN_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

T = TypeVar("T")


class UnreadableError(Exception):
    """An object cannot be taken into a cache, however often it is read again."""


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event_decoder = msgspec.json.Decoder(_Event)


async def decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """Decode, cut if it is nested too deep. Raises one of NOT_DECODED."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        # In a thread: cutting is some fifty times slower than decoding, and any user can create such objects.
        return decoder.decode(await asyncio.to_thread(cut, raw))


async def read_event(line: bytes) -> tuple[str, bytes]:
    """Return the type and the object of one line of a watch. Raises UnreadableError."""
    try:
        event = await decode(_event_decoder, line)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error
    return event.type, bytes(event.object)


def is_deeper(raw: bytes, levels: int) -> bool:
    """Tell whether objects and lists are nested deeper than `levels`."""
    if raw.count(b"{") + raw.count(b"[") <= levels:  # nearly every object; costs next to nothing
        return False
    brackets = _TEXTS.sub(b"", raw).translate(None, _OTHER_THAN_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > levels


def cut(raw: bytes, levels: int = CUT_LEVELS) -> bytes:
    """Return JSON with null in place of each object or list below `levels`. Without recursion."""
    parts: list[bytes] = []
    level = start = 0
    for token in _TOKENS.finditer(raw):
        step = _STEPS.get(raw[token.start()], 0)
        if step > 0 and level == levels:
            parts += (raw[start : token.start()], b"null")
        level += step
        if step < 0 and level == levels:
            start = token.end()
    return b"".join(parts) + (raw[start:] if level <= levels else b"")
