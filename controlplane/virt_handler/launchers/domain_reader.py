# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a launcher's domain XML: once for each connection, and again when the guest agent connects or disconnects.

connection.py decides when to look.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from controlplane.api.objects.pod import sanitize
from controlplane.domain.observed import Observed, UnreadableError, read_domain
from controlplane.hypervisor.errors import NotText
from controlplane.hypervisor.events import AgentChanged, Event
from controlplane.virt_handler.launchers.ports import Guest

log = logging.getLogger(__name__)


class DomainReader:
    """Reads the domain of one launcher, across connections."""

    def __init__(self) -> None:
        self._is_unreadable = False
        """The description was malformed: it is not read again on this connection."""
        self._is_stale = False
        """The agent may have connected or disconnected since the description was read."""

    def begin(self) -> None:
        """Reset for a new connection or a new domain."""
        self._is_unreadable = self._is_stale = False

    def note(self, events: Sequence[Event]) -> None:
        """Record the events before a look. An empty sequence (a periodic look) makes the description stale."""
        self._is_stale = self._is_stale or not events or any(isinstance(event, AgentChanged) for event in events)

    async def read(self, guest: Guest, last: Observed | None, log_fields: Mapping[str, str]) -> Observed | None:
        """Read the domain unless `last` is current; None when it cannot be read. HypervisorError.

        Several looks may run at a time: an event that arrives during a read leaves the description stale.
        """
        if self._is_unreadable or (last is not None and not self._is_stale):
            return last
        self._is_stale = False
        try:
            return await guest.described(read_domain)
        except (UnreadableError, NotText) as error:
            self._is_unreadable = True
            log.warning("a domain's description is unreadable", extra={**log_fields, "error": sanitize(str(error))})
            return last
        except BaseException:
            self._is_stale = True
            raise
