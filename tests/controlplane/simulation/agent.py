# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in a guest, controlled by the tenant: honest, silent, lying, or endlessly verbose.

A lying agent repeats its lie: at rest nothing changes, and nothing may be written.
"""

from __future__ import annotations

import json
import random
from typing import Any, Literal

Manner = Literal["honest", "silent", "lies", "oversized"]
MANNERS: tuple[Manner, ...] = (*("honest", "lies") * 3, "honest", "silent", "oversized")
NAME = "Simulated"
"""The name of an honest guest's system."""
FREEZE, THAW, STATUS = "guest-fsfreeze-freeze", "guest-fsfreeze-thaw", "guest-fsfreeze-status"
INFO, SYSTEM, INTERFACES = "guest-info", "guest-get-osinfo", "guest-network-get-interfaces"
WHILE_FROZEN = (FREEZE, THAW, STATUS, INFO)
"""Commands that an agent accepts while its file systems are frozen."""
MARK = "VERBATIM"
"""In every text of a lying agent."""

Failure = Literal["silent", "too long", "refused"]


class AgentError(Exception):
    """No response, or a malformed one."""

    def __init__(self, kind: Failure) -> None:
        super().__init__(kind)
        self.kind = kind


class Agent:
    """One connected agent; after a reconnect there is a new one."""

    def __init__(self, rng: random.Random) -> None:
        self.manner: Manner = rng.choice(MANNERS)
        self._lies = random.Random(rng.random())
        self._told: dict[str, str] = {}

    def answer(self, command: str, *, is_frozen: bool) -> str:
        """Respond to a command, honestly or not. Raises AgentError."""
        if self.manner == "silent":
            raise AgentError("silent")
        if self.manner == "oversized":
            raise AgentError("too long")
        if self.manner == "lies":
            return self._told.setdefault(command, self._lie(command))
        if is_frozen and command not in WHILE_FROZEN:
            raise AgentError("refused")
        return json.dumps({"return": _honest(command, is_frozen=is_frozen)})

    def _lie(self, command: str) -> str:
        choice = self._lies.choice
        word = choice((MARK, MARK * 500, MARK * 40, f"{MARK}\x1b[2J\n\u202e", f"{MARK}/../../Failed", ""))
        anything: Any = choice((None, 7, -1e300, [], {}, [None], {"Failed": word}, word, [word] * 300))
        spoken = {
            INFO: {"version": word, "supported_commands": [{"name": word, "enabled": True}] * choice((0, 1, 900))},
            SYSTEM: dict.fromkeys(("name", "id", "pretty-name", "kernel-version", "machine"), word),
            INTERFACES: [_interface(word, number) for number in range(choice((0, 1, 12, 200)))],
            STATUS: choice(("frozen", "thawed", word)),
        }
        response = choice((*(spoken.get(command, anything),) * 3, anything))
        return choice((*(json.dumps({"return": response}),) * 5, json.dumps(response), word, "[" * 200))


def _interface(word: str, number: int) -> dict[str, Any]:
    addresses = [{"ip-address-type": "ipv4", "ip-address": f"10.9.{number}.{item}", "prefix": 8} for item in range(20)]
    return {"name": f"{word}{number}", "hardware-address": "02:00:00:00:00:99", "ip-addresses": [*addresses, word]}


def _honest(command: str, *, is_frozen: bool) -> Any:
    answers: dict[str, Any] = {
        INFO: {"version": "9.2.0"},
        SYSTEM: {"name": NAME, "id": "simulated"},
        INTERFACES: [{"name": "enp1s0", "hardware-address": "02:00:00:00:00:01", "ip-addresses": []}],
        STATUS: "frozen" if is_frozen else "thawed",
        FREEZE: 1,
        THAW: 1,
    }
    return answers.get(command, {})
