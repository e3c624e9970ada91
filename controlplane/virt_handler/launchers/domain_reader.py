# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a launcher's domain description: once in a connection, and again when its agent came or went.

When to look is decided in connection.py.
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
    """What is known of one launcher's domain, over one connection after the other."""

    def __init__(self) -> None:
        self._is_unreadable = False
        """The domain's description on this connection was bad: it is not read again."""
        self._is_stale = False
        """Its agent may have come or gone since the description was asked for."""

    def begin(self) -> None:
        """Begin with another connection, or another domain."""
        self._is_unreadable = self._is_stale = False

    def note(self, happened: Sequence[Event]) -> None:
        """Take note of events that are about to be answered by a look; of none, when it is time to look without."""
        self._is_stale = self._is_stale or not happened or any(isinstance(one, AgentChanged) for one in happened)

    async def read(self, guest: Guest, known: Observed | None, who: Mapping[str, str]) -> Observed | None:
        """Read what the domain is, if that is not known; None when it cannot be read. HypervisorError.

        What came to be stale while libvirt answered is stale afterwards, too: several look at a time.
        """
        if self._is_unreadable or (known is not None and not self._is_stale):
            return known
        self._is_stale = False
        try:
            return await guest.described(read_domain)
        except (UnreadableError, NotText) as error:
            self._is_unreadable = True
            log.warning("a launcher describes its domain badly", extra={**who, "error": sanitize(str(error))})
            return known
        except BaseException:
            self._is_stale = True
            raise
