# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pings and commands for a guest's agent, and its responses. Pure.

The protocol is QEMU's (guest-ping, guest-exec, guest-exec-status). Responses come from the guest: their length is
limited, and only two numbers and a flag are read. The command's output is not requested: it may have 16 MiB.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

RESPONSE_LIMIT = 4096
"""Characters of a response; ordinary ones have some fifty."""
SIGNALLED = 128
"""Added to the number of the signal that ended a command, as in shells."""

PING = '{"execute":"guest-ping"}'


class ResponseError(ValueError):
    """The agent's response does not follow its protocol."""


class Ended(NamedTuple):
    """A command has ended. exit_code: 128 and more for a signal."""

    exit_code: int


def start_command(command: tuple[str, ...]) -> str:
    """Return the request to run a command: a program with its arguments."""
    arguments = {"path": command[0], "arg": list(command[1:]), "capture-output": False}
    return json.dumps({"execute": "guest-exec", "arguments": arguments})


def query_status(pid: int) -> str:
    """Return the request for the status of a command."""
    return json.dumps({"execute": "guest-exec-status", "arguments": {"pid": pid}})


def read_started(response: str) -> int:
    """Return the process id of the started command. ResponseError."""
    return _number(_returned(response), "pid")


def read_status(response: str) -> Ended | None:
    """Return how a command ended; None while it runs. ResponseError."""
    status = _returned(response)
    if status.get("exited") is not True:
        return None
    if "signal" in status:
        return Ended(SIGNALLED + _number(status, "signal"))
    return Ended(_number(status, "exitcode"))


def _returned(response: str) -> dict[str, Any]:
    if len(response) > RESPONSE_LIMIT:
        raise ResponseError(f"the agent's response has {len(response)} characters, at most {RESPONSE_LIMIT} are read")
    try:
        message = json.loads(response)
    except (ValueError, RecursionError):
        raise ResponseError("the agent's response is not JSON") from None
    returned = message.get("return") if isinstance(message, dict) else None
    if not isinstance(returned, dict):
        raise ResponseError("the agent's response has no object in `return`")
    return returned


def _number(fields: dict[str, Any], name: str) -> int:
    number = fields.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**32:
        raise ResponseError(f"the agent's response has no number {name}")
    return number
