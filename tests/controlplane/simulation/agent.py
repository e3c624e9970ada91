# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in a guest: it responds, or is silent. A lying agent: tests/controlplane/test_what_guests_say.py."""

from __future__ import annotations

import json
import random
from typing import Any

SILENT = 0.2
"""The share of agents that never respond."""
NAME = "Simulated"
"""The name of the guest's system."""
FREEZE, THAW, STATUS = "guest-fsfreeze-freeze", "guest-fsfreeze-thaw", "guest-fsfreeze-status"
INFO, SYSTEM, INTERFACES = "guest-info", "guest-get-osinfo", "guest-network-get-interfaces"
WHILE_FROZEN = (FREEZE, THAW, STATUS, INFO)
"""Commands that an agent accepts while its file systems are frozen."""


class AgentError(Exception):
    """No response, or a refusal."""

    def __init__(self, text: str, *, is_silent: bool) -> None:
        super().__init__(text)
        self.is_silent = is_silent


class Agent:
    """One connected agent; after a reconnect there is a new one."""

    def __init__(self, rng: random.Random) -> None:
        self.is_silent = rng.random() < SILENT

    def answer(self, command: str, *, is_frozen: bool) -> str:
        """Respond to a command. Raises AgentError."""
        if self.is_silent:
            raise AgentError("no response", is_silent=True)
        if is_frozen and command not in WHILE_FROZEN:
            raise AgentError("refused", is_silent=False)
        return json.dumps({"return": _response(command, is_frozen=is_frozen)})


def _response(command: str, *, is_frozen: bool) -> Any:
    responses: dict[str, Any] = {
        INFO: {"version": "9.2.0"},
        SYSTEM: {"name": NAME, "id": "simulated"},
        INTERFACES: [{"name": "enp1s0", "hardware-address": "02:00:00:00:00:01", "ip-addresses": []}],
        STATUS: "frozen" if is_frozen else "thawed",
        FREEZE: 1,
        THAW: 1,
    }
    return responses.get(command, {})
