# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said to a guest's agent to run a command or to see that it is there, and what it answers. Pure.

The protocol is QEMU's (guest-ping, guest-exec, guest-exec-status). What comes back is the guest's: bounded, then read
for two numbers and a flag. What the command prints is not asked for: an agent may hold 16 MiB of it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

ANSWER_LIMIT = 4096
"""Characters of an answer; those that are asked for have some fifty."""
SIGNALLED = 128
"""Added to the number of the signal that ended a command, as shells do."""

PING = '{"execute":"guest-ping"}'


class AnswerError(ValueError):
    """The agent answered something else than what its protocol says."""


class Ended(NamedTuple):
    """A command of the guest has ended. exit_code: 128 and more for a signal."""

    exit_code: int


def start_command(words: tuple[str, ...]) -> str:
    """Ask to run a program with its arguments."""
    asked = {"path": words[0], "arg": list(words[1:]), "capture-output": False}
    return json.dumps({"execute": "guest-exec", "arguments": asked})


def ask_status(pid: int) -> str:
    """Ask what became of a command."""
    return json.dumps({"execute": "guest-exec-status", "arguments": {"pid": pid}})


def read_started(answer: str) -> int:
    """Return the number of the process that was started. AnswerError."""
    return _number(_returned(answer), "pid")


def read_status(answer: str) -> Ended | None:
    """Return how a command ended; None while it runs. AnswerError."""
    said = _returned(answer)
    if said.get("exited") is not True:
        return None
    if "signal" in said:
        return Ended(SIGNALLED + _number(said, "signal"))
    return Ended(_number(said, "exitcode"))


def _returned(answer: str) -> dict[str, Any]:
    if len(answer) > ANSWER_LIMIT:
        raise AnswerError(f"the agent's answer has {len(answer)} characters, at most {ANSWER_LIMIT} are read")
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        raise AnswerError("the agent's answer is not JSON") from None
    returned = said.get("return") if isinstance(said, dict) else None
    if not isinstance(returned, dict):
        raise AnswerError("the agent's answer returns no object")
    return returned


def _number(said: dict[str, Any], name: str) -> int:
    number = said.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**32:
        raise AnswerError(f"the agent's answer has no number called {name}")
    return number
