# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits on concurrent questions. The answers, over real TLS: test_power_requests.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.links.handler import ADDRESS, CERTIFICATE, Guest, Power
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.subresources import handler_client as module
from controlplane.virt_api.subresources.handler_client import HandlerClient, NotSentError, read_endpoint

QUESTION = Power(Guest("node-1", "uid", "pod"), "reset", 0)


class Client:
    """An API server that does not answer until it is resumed."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()

    async def get(self, *_unused: object) -> dict[str, Any]:
        await self.resumed.wait()
        return {}


async def test_questions_of_all_namespaces_to_one_node_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONCURRENT_OF_NAMESPACE", 1)
    monkeypatch.setattr(module, "MAX_CONCURRENT", 3)
    client = Client()
    handlers = HandlerClient(client, lambda: KeyPair(b"", b""))  # type: ignore[arg-type]
    waiting = [asyncio.create_task(handlers.call(f"ns-{number}", QUESTION)) for number in range(3)]
    await asyncio.sleep(0)

    with pytest.raises(NotSentError, match="too many requests to virt-handler of node node-1"):
        await handlers.call("ns-4", QUESTION)

    client.resumed.set()
    for error in await asyncio.gather(*waiting, return_exceptions=True):
        assert "has not published where it listens" in str(error)
    with pytest.raises(NotSentError, match="has not published where it listens"):
        await handlers.call("ns-4", QUESTION)


def test_a_port_has_ascii_digits() -> None:
    """Python also parses other digits as numbers."""
    annotations = {ADDRESS: "10.0.0.7:\u0668\u0661\u0668\u0666"}
    with pytest.raises(ValueError, match="is no IP address and port"):
        read_endpoint({"metadata": {"annotations": {**annotations, CERTIFICATE: "aGk="}}})
