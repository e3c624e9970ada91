# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dialogue on a console: each step sends a line, or waits for a pattern, or both."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from .._client.errors import BadArgument, TimedOut, VirtError
from .._client.websocket_frames import BROKEN, Closed
from .._vm import transcript
from ..kubevirt_api.close_codes import LOST, MOVED, REPLACED, TAKEN_OVER, TOO_SLOW

SHOWN_LINES = 20
"""Lines of the guest that an error shows."""
_AGAIN = {
    BROKEN: "run the task again",
    LOST: "run the task again",
    MOVED: "run the task again",
    REPLACED: "run the task again, with the new instance",
    TAKEN_OVER: "run the task again when the other session is over",
    TOO_SLOW: "run the task again",
}
"""What to do about the end of a session, by its close code. A session that ended with its guest says it itself."""
_FOR_PEOPLE = ": connect again"
"""The end of virt-api's reason, for a person at a console."""


class Stream(Protocol):
    """A console."""

    def send(self, data: bytes, deadline: float) -> None:
        """Closed, TimeoutError."""

    def receive(self, deadline: float) -> bytes:
        """Closed, TimeoutError."""


class Step:
    """One step, checked."""

    def __init__(self, number: int, options: dict[str, Any]) -> None:
        """BadArgument names the option."""
        self.number = number
        secret = options.get("send_secret")
        self.sent = options.get("send") if secret is None else secret
        self.has_enter = bool(options.get("enter", True))
        self.expected = options.get("expect")
        seconds = options.get("timeout")
        self.seconds = 60 if seconds is None else int(seconds)
        if self.seconds < 1:
            raise BadArgument(f"steps[{number}].timeout is {self.seconds}; give 1 or more seconds")
        if self.sent is None and self.expected is None:
            raise BadArgument(f"steps[{number}] does nothing: give send, send_secret or expect")
        try:
            self.pattern = None if self.expected is None else re.compile(self.expected, re.MULTILINE)
        except re.error as error:
            raise BadArgument(f"steps[{number}].expect {self.expected!r} is no regular expression: {error}") from error


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError inside the block when its time is over: what a guest prints decides how long a search takes.

    Only for a main thread, as a module's is.
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


class Dialogue:
    """Runs steps on one console."""

    def __init__(
        self,
        stream: Stream,
        title: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        find_reason: Callable[[], str] = lambda: "",
    ) -> None:
        """title: of the machine, for messages. find_reason: says after a timeout why the guest is silent, or ""."""
        self._stream = stream
        self._title = title
        self._clock = clock
        self._find_reason = find_reason
        self._all = b""
        self._unmatched = b""
        self._has_dropped = False
        """Of what no step has matched yet."""

    @property
    def text(self) -> str:
        """All that the guest has printed so far."""
        return transcript.printable(self._all)

    def run(self, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Run the steps, and return what each has matched. TimedOut, VirtError; their facts have the transcript."""
        return [self._run(step) for step in steps]

    def _run(self, step: Step) -> dict[str, Any]:
        deadline = self._clock() + step.seconds
        try:
            if step.sent is not None:
                self._unmatched, self._has_dropped = b"", False
                self._stream.send((step.sent + "\n" * step.has_enter).encode(), deadline)
            return {} if step.pattern is None else self._expect(step.pattern, deadline)
        except TimeoutError as error:
            missing = "take what was sent" if step.pattern is None else f"print {step.expected!r}"
            text = f"did not {missing} within {step.seconds} s"
            if self._has_dropped:
                text += f" in its last {transcript.LIMIT // 1024} KiB; what it printed before them was dropped"
            if reason := self._find_reason():
                text += f"; {reason}"
            raise TimedOut(self._message(step, text), **self._facts(step)) from error
        except Closed as error:
            text = f"ended before step {step.number} was done: {_why_ended(error)}"
            raise VirtError(self._message(step, text), **self._facts(step)) from error

    def _expect(self, pattern: re.Pattern[str], deadline: float) -> dict[str, Any]:
        while True:
            text = transcript.printable(self._unmatched)
            with _interrupted_after(deadline - self._clock()):
                match = pattern.search(text)
            if match is not None:
                self._unmatched = text[match.end() :].encode() + transcript.unfinished(self._unmatched)
                self._has_dropped = False
                return {"match": match.group(), "groups": [group or "" for group in match.groups()]}
            data = self._stream.receive(deadline)
            self._all = (self._all + data)[-transcript.LIMIT :]
            self._has_dropped |= len(self._unmatched) + len(data) > transcript.LIMIT
            self._unmatched = (self._unmatched + data)[-transcript.LIMIT :]

    def _message(self, step: Step, what: str) -> str:
        lines = transcript.last_lines(self.text, SHOWN_LINES)
        shown = "; it printed nothing" if not lines else "; its last lines:\n" + "\n".join(lines)
        return f"the console of {self._title} {what} (steps[{step.number}]){shown}"

    def _facts(self, step: Step) -> dict[str, Any]:
        return {"transcript": self.text, "step": step.number}


def _why_ended(closed: Closed) -> str:
    """Return the reason with what to do: a task connects only once. Pure."""
    reason, again = str(closed).removesuffix(_FOR_PEOPLE), _AGAIN.get(closed.code)
    return f"{reason}; {again}" if again else reason
