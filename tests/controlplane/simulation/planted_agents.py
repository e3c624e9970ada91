# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what is made of a guest's agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controlplane.domain.agent import AgentState
from controlplane.virt_handler.launchers.agent import Agent
from controlplane.virt_handler.launchers.freeze import Freeze


def unbounded(value: Any, _unused: int) -> str:
    """Take whatever was said."""
    return value if isinstance(value, str) else ""


def never_over(_unused: Freeze) -> float | None:
    """Forget when a freeze ends."""
    return None


def over_at_once(freeze: Freeze) -> float | None:
    """Thaw what was frozen a moment ago."""
    return None if freeze._until is None else 0.0


def remembered(agent: Agent, told: AgentState) -> None:
    """Go on telling what one has told that is gone."""
    _tell(agent, told if told.is_connected else replace(agent._told, is_connected=True))


_tell = Agent._tell
