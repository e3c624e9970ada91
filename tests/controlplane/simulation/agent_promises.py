# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invariants about a guest's agent: its data is reported within limits, and decides nothing.

It shares no code with virt-handler.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tests.controlplane.simulation.agent import MARK, NAME
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.truth import condition
from tests.support.store import Json

OWN = ("guestOSInfo", "interfaces", "fsFreezeStatus")
"""Fields of a status that may contain data of an agent."""
OWN_CONDITIONS = ("AgentConnected", "AgentVersionNotSupported")
LIMIT_BYTES, LONGEST_WORD = 16 << 10, 256
USUAL_SECONDS = 300.0
"""How long a freeze lasts when its requested timeout is no longer known."""


def word_is_bounded(asked: Asked) -> str | None:
    """Return where data of the agent is in a wrong field or exceeds its limit."""
    new_status = dict(asked.call.asked["patch"].get("status", {}))
    own = {name: new_status.pop(name) for name in OWN if name in new_status}
    listed = new_status.pop("conditions", None) or []
    own["conditions"] = [item for item in listed if item["type"] in OWN_CONDITIONS]
    new_status["conditions"] = [item for item in listed if item["type"] not in OWN_CONDITIONS]
    if MARK in msgspec.json.encode(new_status).decode():
        return f"a guest's word is said as if it were ours: {new_status}"
    words = (own.get("guestOSInfo") or {}).values()
    if any(len(item) > LONGEST_WORD for item in words if item is not None):
        return "a word of a guest's is told at a length that nobody reads"
    size = len(msgspec.json.encode(own))
    return f"a guest's word takes {size} bytes of a status" if size > LIMIT_BYTES else None


def thaws_in_time(asked: Asked, guest: Launcher | None, now: float, *, is_by_person: bool) -> str | None:
    """A frozen guest is thawed when a user asks for it, or at its timeout. now: monotonic."""
    if asked.call.verb != "thaw" or guest is None or is_by_person or not guest.is_frozen:
        return None
    early = guest.freeze_ends[0] - now
    return f"it is thawed {early:.1f} s too early, and nobody has asked for it" if early > 0 else None


def untrue_of_agent(vmi: Json, guest: Launcher) -> Iterator[str]:
    """Return what the VMI of a running guest reports wrongly about its agent at rest, and a freeze that has not
    ended.
    """
    status = vmi["status"]
    reported = condition(vmi, "AgentConnected").get("status") == "True"
    if reported is (guest.agent is None):
        yield f"says AgentConnected {reported}, and the channel is {'closed' if reported else 'open'}"
        return
    if guest.agent is None:
        told = [item for item in ("guestOSInfo", "fsFreezeStatus") if status.get(item)]
        if told:
            yield f"says {told[0]} {status[told[0]]}, and there is no agent"
        return
    if guest.agent.manner != "honest" or not guest.is_going_on:
        return
    if guest.is_frozen and guest.freeze_ends[1]:
        yield "is frozen"
    if (status.get("fsFreezeStatus") == "frozen") is not guest.is_frozen:
        yield f"says fsFreezeStatus {status.get('fsFreezeStatus')}, and it is {'' if guest.is_frozen else 'not '}frozen"
    if not guest.is_frozen and (status.get("guestOSInfo") or {}).get("name") != NAME:
        yield f"says guestOSInfo {status.get('guestOSInfo')}, and its agent says more"
