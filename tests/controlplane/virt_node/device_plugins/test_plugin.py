# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a plugin counts as registered. Its answers: test_serve."""

from __future__ import annotations

import asyncio

from controlplane.virt_node.device_plugins.device import KVM
from controlplane.virt_node.device_plugins.plugin import Plugin, Service
from tests.support.tasks import cancel_task


class Stream:
    """A ListAndWatch stream that a kubelet keeps open."""

    async def recv_message(self) -> bytes:
        return b""

    async def send_message(self, _message: bytes) -> None:
        """Accept the message."""


async def end(watching: asyncio.Task[None]) -> None:
    await cancel_task(watching)


async def test_a_registration_lasts_while_any_stream_is_open() -> None:
    """A kubelet may open the next stream before it closes the last."""
    service = Service(Plugin(KVM, KVM.path, is_healthy=True))
    first, second = (asyncio.create_task(service._list_and_watch(Stream())) for _unused in range(2))  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        await service.opened.wait()
    await end(first)
    assert not service.ended.is_set()
    await end(second)
    assert service.ended.is_set()
