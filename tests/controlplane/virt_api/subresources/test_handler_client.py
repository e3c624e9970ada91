# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many questions are under way at once. What becomes of one, over real TLS, is in test_guests.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.kube.certificates import KeyPair
from controlplane.links.handler import ADDRESS, CERTIFICATE, Guest, Power
from controlplane.virt_api.subresources import handler_client as module
from controlplane.virt_api.subresources.handler_client import Handlers, NotAskedError, find_place

QUESTION = Power(Guest("node-1", "uid", "pod"), "reset", 0)


class Client:
    """An API server that does not say where a node is until it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()

    async def get(self, *_unused: object) -> dict[str, Any]:
        await self.let.wait()
        return {}


async def test_a_node_that_answers_nobody_holds_so_many_questions_of_however_many_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each namespace always gets a place, and namespaces can be made without end."""
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "AT_MOST", 3)
    client = Client()
    handlers = Handlers(client, lambda: KeyPair(b"", b""))  # type: ignore[arg-type]
    waiting = [asyncio.create_task(handlers.ask(f"ns-{number}", QUESTION)) for number in range(3)]
    await asyncio.sleep(0)

    with pytest.raises(NotAskedError, match="is being asked too much at once"):
        await handlers.ask("ns-4", QUESTION)

    client.let.set()
    for ended in await asyncio.gather(*waiting, return_exceptions=True):
        assert "has not said where it listens" in str(ended)
    with pytest.raises(NotAskedError, match="has not said where it listens"):
        await handlers.ask("ns-4", QUESTION)


def test_a_port_is_spelled_in_ascii() -> None:
    """Other digits are numbers to Python and to nobody who reads the annotation."""
    annotations = {ADDRESS: "10.0.0.7:\u0668\u0661\u0668\u0666"}
    with pytest.raises(ValueError, match="no IP address and port"):
        find_place({"metadata": {"annotations": {**annotations, CERTIFICATE: "aGk="}}})
