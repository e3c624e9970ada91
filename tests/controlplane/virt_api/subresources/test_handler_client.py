# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a virt-handler listens, silent ones, and the limits on concurrent questions.

Answers, over real TLS: test_power_requests.py.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from controlplane.links import handler as link
from controlplane.links.handler import ADDRESS, CERTIFICATE, Guest, Power
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.subresources import handler_client as module
from controlplane.virt_api.subresources.handler_client import HandlerClient, NotSentError, read_endpoint
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.kube.fake_api import a_client
from tests.controlplane.virt_api.served import CLIENTS, Json, a_client_pair, serving
from tests.controlplane.virt_api.subresources.stage import VMI, Stage, a_vmi, captured, leave

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


GOOD = base64.b64encode(b"certificate").decode()


def a_node(address: Any = "10.0.0.7:8186", certificate: Any = GOOD) -> Json:
    return {
        "metadata": {
            "annotations": {"kubevirt.io/handler-address": address, "kubevirt.io/handler-certificate": certificate}
        }
    }


@pytest.mark.parametrize(
    "address", ["10.0.0.7:8186", "100.64.0.7:8186", "240.0.0.7:8186", "[fd00::7]:8186", "[2001:db8::7]:8186"]
)
def test_an_endpoint_is_an_ip_address_and_a_port(address: str) -> None:
    endpoint = read_endpoint(a_node(address))
    assert (endpoint.port, endpoint.certificate) == (8186, b"certificate")
    assert str(endpoint.url(link.PATH)) == f"https://{address}/v1/ask"


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"metadata": {"annotations": None}},
        a_node(""),
        a_node(certificate=""),
        *(
            a_node(address)
            for address in (
                "evil.example:8186",
                "10.0.0.7",
                "10.0.0.7:0",
                "10.0.0.7:65536",
                "10.0.0.7:1@x:8186",
                "10.0.0.7:" + "1" * 99,
                "[fd00::7",
                "127.0.0.1:8186",
                "0.0.0.0:8186",
                "169.254.169.254:80",
                "224.0.0.1:8186",
                "255.255.255.255:8186",
                "[::1]:8186",
                "[::]:8186",
                "[fe80::1]:8186",
                "[ff02::1]:8186",
                "[::ffff:127.0.0.1]:8186",
                "[64:ff9b::7f00:1]:8186",
                "[::127.0.0.1]:8186",
                "[2002:7f00:1::]:8186",
                "[2001::1]:8186",
                "[fd00:ec2::254]:80",
                "[fd20:ce::254]:80",
                "100.100.100.200:80",
                "168.63.129.16:80",
                "192.0.0.192:80",
            )
        ),
        a_node(certificate="%%%"),
        a_node(certificate="A" * 5000),
    ],
    ids=lambda node: str(node)[-60:],
)
def test_an_invalid_endpoint_is_refused(node: Json) -> None:
    with pytest.raises(ValueError, match=r"virt-handler|certificate"):
        read_endpoint(node)


async def test_an_address_of_virt_apis_own_host_is_refused(tmp_path: Path, pair: SelfSignedPair) -> None:
    """The other tests allow it, because all their nodes are on this host."""
    async with serving(tmp_path) as served, a_client(served.api) as client:
        Stage(served, pair).announce(8186)
        mine = a_client_pair(served.proxy_authority, usage=CLIENTS)
        with pytest.raises(
            NotSentError, match=r"node node-1: its virt-handler cannot listen at 127\.0\.0\.1, which is no other"
        ):
            await HandlerClient(client, lambda: mine).call("ns", Power(Guest("node-1", "v", "p"), "reset"))


class Silent:
    """A node that takes questions and never answers."""

    def __init__(self) -> None:
        self.arrived, self.over = asyncio.Semaphore(0), asyncio.Event()

    async def speak(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrived.release()
        await self.over.wait()
        await leave(writer)


async def test_a_namespace_with_silent_vmis_delays_no_other(stage: Stage) -> None:
    """The quotas are per namespace and per kind of question."""
    other = VMI.replace("/ns/", "/other/")
    stage.served.api.put(other, a_vmi())
    node = Silent()
    async with captured(stage, node.speak):
        waiting = [asyncio.create_task(stage.call("reset")) for _unused in range(module.MAX_CONCURRENT_OF_NAMESPACE)]
        for _unused in waiting:
            await node.arrived.acquire()
        others = (
            asyncio.create_task(stage.call("reset", namespace="other")),
            asyncio.create_task(stage.get_guest_info()),
        )
        for _unused in others:
            await node.arrived.acquire()
        assert (await stage.call("reset"))[0] == 503
        node.over.set()
        await asyncio.gather(*waiting, *others)


async def test_a_silent_node_is_504(tmp_path: Path, pair: SelfSignedPair, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    node = Silent()
    async with serving(tmp_path) as served:
        stage = Stage(served, pair)
        await stage.open()
        async with captured(stage, node.speak):
            code, status = await stage.call("reset")
            node.over.set()
        await stage.endpoint.close()
    assert (code, "did not answer within" in status["message"]) == (504, True)
