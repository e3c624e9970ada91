# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes screenshots of guests for virt-api: finds the launcher, asks its libvirt, makes a PNG of the picture.

The picture is a tenant's: it is bounded (domain/screenshot.py), and encoded in a thread. It is stored nowhere. The
guest's identity is checked as power.py does. Only a few are taken at once: each may need some 50 MiB of memory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from controlplane.api.objects.pod import sanitize
from controlplane.domain.screenshot import UnreadableScreenshot, to_png
from controlplane.http_server.quotas import BusyError, Quota
from controlplane.links.handler import Answer, NotDone, Picture, TakeScreenshot
from controlplane.virt_handler.launchers.of_guest import Launchers, LauncherSession, absent, find_session
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

log = logging.getLogger(__name__)

AT_ONCE, AT_ONCE_OF_NAMESPACE = 4, 2
"""Screenshots of this node that are taken at once."""


class ScreenSession(LauncherSession, Protocol):
    """A launcher whose guest's screen can be seen."""

    async def take_screenshot(self) -> bytearray:
        """VerbRefused, NoContact."""


class Screenshots:
    """Handles links.handler.TakeScreenshot."""

    def __init__(self, node: str, launchers: Launchers[ScreenSession]) -> None:
        self._node = node
        self._launchers = launchers
        self._quota = Quota(AT_ONCE, AT_ONCE_OF_NAMESPACE)

    async def answer(self, request: TakeScreenshot) -> Answer:
        """Take a screenshot. One that was begun counts against the quota until it has ended, also when cancelled."""
        session = find_session(self._node, self._launchers, request.guest)
        if session is None:
            return absent(self._node)
        return await asyncio.shield(asyncio.create_task(self._take(session, request.guest.pod_uid)))

    async def _take(self, session: ScreenSession, pod_uid: str) -> Answer:
        key = session.launcher().pod.vmi_key
        busy = f"node {self._node} takes {AT_ONCE_OF_NAMESPACE} screenshots of a namespace at once; try again"
        try:
            with self._quota.reserve("" if key is None else key.namespace, 1, busy):
                picture = await session.take_screenshot()
                return Picture(await asyncio.to_thread(to_png, picture))
        except BusyError as error:
            return NotDone("busy", str(error))
        except VerbRefused as error:
            return NotDone("refused", sanitize(str(error)))
        except UnreadableScreenshot as error:
            return NotDone("refused", f"libvirt's picture of the screen cannot be used: {error}")
        except NoContact as error:
            log.info("no screenshot", extra={"pod": pod_uid, "error": sanitize(str(error))})
            return NotDone("lost", sanitize(str(error)))
