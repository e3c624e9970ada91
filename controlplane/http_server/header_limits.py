# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a connection holds of requests' heads: where they begin and end, and how much that is. Pure.

A head is a request's line and headers. The parser keeps one until it ends, and those of requests that were sent ahead
of their answers. Which bytes are a body's the parser says, so that nobody can have the two differ.
"""

from __future__ import annotations

from collections import deque

_END = b"\r\n\r\n"
_MOST_AHEAD = 8
"""Requests of which none is answered: each takes some kilobytes more than its bytes. No API server sends any ahead."""


class Heads:
    """Counts what is held of one connection: all but the body of the request that is being answered."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._unanswered: deque[int] = deque()
        self._begun = 0
        """Bytes of the head that has not ended."""
        self._held = 0
        self._end_of_last = b""
        """The end of a head may be cut in two."""
        self._body: int | None = 0
        """Bytes that follow and are none of a head; None when their number is not known."""

    def take(self, data: bytes, at: int) -> int:
        """Return how much from there on goes to the parser in one piece; 0 when it would hold too much by it."""
        left = len(data) - at
        if self._body is None:
            return min(left, self._most)
        if self._body:
            size = min(left, self._body)
            self._body -= size
            return size
        if len(self._unanswered) >= _MOST_AHEAD:
            return 0
        looked_at = self._end_of_last + data[at : at + self._most + len(_END)]
        found = looked_at.find(_END)
        size = left if found < 0 else found + len(_END) - len(self._end_of_last)
        if self._held + size > self._most:
            return 0
        self._held += size
        self._begun += size
        self._end_of_last = (self._end_of_last + data[at : at + size])[1 - len(_END) :]
        return size

    def ended(self, body: int | None) -> None:
        """Note that a head has ended, and how long its body is, which counts as well while others are answered."""
        self._body = 0 if self._unanswered else body
        self._unanswered.append(self._begun)
        self._begun = 0
        self._end_of_last = b""

    def body_ended(self) -> None:
        self._body = 0

    def answered(self) -> None:
        """Note that the first of the requests is answered: nothing of it is held any more."""
        if self._unanswered:
            self._held -= self._unanswered.popleft()
