# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responds to virt-api's queries about a guest: finds the launcher, and queries the guest's agent.

It stores and writes nothing. It checks the guest's identity as power.py does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from controlplane.api.objects.pod import sanitize
from controlplane.domain.guest_details import COMMANDS, read_details
from controlplane.links.handler import DETAILS_LIMIT_BYTES, Answer, Details, Inquire, NotDone
from controlplane.virt_handler.launchers.of_guest import Launchers, LauncherSession, absent, find_session
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

log = logging.getLogger(__name__)


class AgentSession(LauncherSession, Protocol):
    """A launcher whose guest agent can be queried."""

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """VerbRefused, NoContact."""


class GuestInfo:
    """Handles links.handler.Inquire."""

    def __init__(self, node: str, launchers: Launchers[AgentSession]) -> None:
        self._node = node
        self._launchers = launchers

    async def answer(self, request: Inquire) -> Answer:
        """Query the agent. Cancelling this call does not cancel a query that was sent."""
        session = find_session(self._node, self._launchers, request.guest)
        if session is None:
            return absent(self._node)
        try:
            responses = await session.inquire(COMMANDS[request.about])
        except VerbRefused as error:
            return NotDone("refused", sanitize(str(error)))
        except NoContact as error:
            log.info(
                "a guest agent did not respond to a user's query",
                extra={"pod": request.guest.pod_uid, "error": sanitize(str(error))},
            )
            return NotDone("lost", sanitize(str(error)))
        return Details(read_details(responses, DETAILS_LIMIT_BYTES))
