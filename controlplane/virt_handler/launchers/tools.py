# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sessions of a node share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.engine.ports import Clock
from controlplane.virt_handler.launchers.agent import QUESTIONS
from controlplane.virt_handler.launchers.pace import RESYNC_SECONDS
from controlplane.virt_handler.launchers.ports import Connect, Failed, Node, Send, TransferRequest


async def _refuse_to_send(request: TransferRequest) -> None:
    raise Failed(f"guest of Pod {request.pod_uid} cannot be sent from here")


@dataclass(frozen=True, slots=True)
class Tools:
    """Clients, the clock, and limits for the whole node."""

    node: Node
    clock: Clock
    connect: Connect
    random: Callable[[], float] = random.random
    """For jitter: numbers in [0, 1)."""
    resync_seconds: float = RESYNC_SECONDS
    started: Callable[[float], None] = lambda _unused: None
    """Called with the seconds of each start (metrics)."""
    send: Send = _refuse_to_send
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS))
    """Limits how many agents are queried at the same time."""
