# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews by turns: each is read into a bounded room, and judged in a thread of judges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial

from controlplane.api.admission.review import find_namespace
from controlplane.engine.ports import Clock
from controlplane.http_server.quotas import Parts, Shares
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.concurrency import BusyError, Judges
from controlplane.virt_api.http.response import Answer
from controlplane.virt_api.http.routes import ToHook

THREADS = 2
"""A small review need not wait for a large one; more would only share one interpreter among them."""
ROOM_BYTES = 48 * 1024 * 1024
"""Of bodies that wait or are judged, and of answers that are not written."""
TENANT_BYTES = ROOM_BYTES // 4
"""Of a peer's bodies in one namespace: about as many large objects as are judged before nobody waits for the answer."""

Charge = Callable[[int], None]
"""Called with the number of bytes before they are kept. Raises BusyError."""
Read = Callable[[Charge], Awaitable[bytes]]


class Reviews:
    """Answers reviews, fairly by peer, and of a peer by namespace."""

    def __init__(
        self, admission: Admission, clock: Clock, *, room_bytes: int = ROOM_BYTES, tenant_bytes: int = TENANT_BYTES
    ) -> None:
        self._admission = admission
        self._room = Shares(room_bytes)
        self._tenants = Parts(tenant_bytes)
        self._judges = Judges(clock, THREADS)

    async def answer(self, peer: str, route: ToHook, read: Read, until_written: ExitStack) -> Answer:
        """Read one review and judge it. Raises BusyError, and what reading raises.

        until_written: closed when the answer is held no more, or there will be none. An answer may be larger than its
        review. One that is not always fits: the room that the review had is given back no sooner than the answer's.
        """
        held = 0

        def charge(amount: int) -> None:
            nonlocal held
            if not self._room.take(peer, amount):
                raise BusyError("too many reviews of this peer are held already")
            held += amount

        until_written.callback(lambda: self._room.give_back(peer, held))
        answer = await self._judge(peer, route, await read(charge))
        if len(answer.body) > held:
            charge(len(answer.body) - held)
        return answer

    async def _judge(self, peer: str, route: ToHook, body: bytes) -> Answer:
        tenant = find_namespace(body)
        if not self._tenants.take(peer, tenant, len(body)):
            raise BusyError("too many reviews of this namespace are held already")
        try:
            return await self._judges.judge(peer, partial(self._admission.answer, route, body), tenant)
        finally:
            self._tenants.give_back(peer, tenant, len(body))

    def close(self) -> None:
        """Take no more; what is being judged ends by itself."""
        self._judges.close()
