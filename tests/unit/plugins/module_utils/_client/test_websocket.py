# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stream of an object, from another server implementation (aiohttp), and from servers without such a stream."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from aiohttp import WSMsgType, web
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import websocket
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import ApiError, NotFound, Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport

from tests.support import http_server

PLAIN = "plain.kubevirt.io"
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"
VMI = Resource("subresources.kubevirt.io/v1", "virtualmachineinstances", "VirtualMachineInstance", "default")
FORBIDDEN = {"kind": "Status", "status": "Failure", "code": 403, "message": "no", "reason": "Forbidden"}


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Say hello with the handshake, then echo everything."""
    stream = web.WebSocketResponse(protocols=(PLAIN,))
    await stream.prepare(request)
    await stream.send_bytes(b"hello")
    async for message in stream:
        if message.type is WSMsgType.BINARY:
            await stream.send_bytes(message.data)
    return stream


async def other_protocol(request: web.Request) -> web.WebSocketResponse:
    stream = web.WebSocketResponse()
    await stream.prepare(request)
    return stream


async def impostor(_request: web.Request) -> web.Response:
    return web.Response(
        status=101, headers={"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "x"}
    )


async def last(request: web.Request) -> web.Response:
    """Accept the handshake, in a response after which the connection ends."""
    key = request.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key, usedforsecurity=False).digest()).decode()
    headers = {"Connection": "close", "Sec-WebSocket-Accept": accept, "Sec-WebSocket-Protocol": PLAIN}
    return web.Response(status=101, headers=headers)


async def refuse(_request: web.Request) -> web.Response:
    return web.json_response(FORBIDDEN, status=403)


async def tell(request: web.Request) -> web.Response:
    return web.json_response({"kind": "Told", "asked": await request.json() if request.can_read_body else None})


@contextmanager
def serving() -> Iterator[Api]:
    handlers = {
        "console": echo,
        "vnc": other_protocol,
        "usbredir": impostor,
        "sound": last,
        "portforward": refuse,
        "sev": tell,
    }
    routes = {f"{PATH}/{name}": handler for name, handler in handlers.items()}
    with http_server.serving(routes) as url, closing(Api(Transport(Endpoint(server=url)))) as api:
        yield api


@pytest.fixture(name="api")
def _api() -> Iterator[Api]:
    with serving() as api:
        yield api


def test_data_that_came_with_the_handshake_is_not_lost(api: Api) -> None:
    stream = websocket.opened(api, VMI, "web", "console", PLAIN)
    with closing(stream):
        assert stream.reader.read(7) == b"\x82\x05hello"
        stream.socket.sendall(b"\x82\x83\0\0\0\0abc")  # a client masks its frames, here with zeros
        assert stream.reader.read(5) == b"\x82\x03abc"


def test_the_next_request_uses_another_connection(api: Api) -> None:
    with closing(websocket.opened(api, VMI, "web", "console", PLAIN)) as stream:
        assert api.ask(VMI, "web", "sev") == {"kind": "Told", "asked": None}
        assert stream.reader.read(7) == b"\x82\x05hello"


@pytest.mark.parametrize("subresource", ["vnc", "usbredir", "sound"])
def test_a_response_that_is_no_stream_is_refused(api: Api, subresource: str) -> None:
    with pytest.raises(Unavailable, match="unexpected response, no WebSocket that speaks plain"):
        websocket.opened(api, VMI, "web", subresource, PLAIN)


def test_a_refused_stream_says_why(api: Api) -> None:
    with pytest.raises(ApiError, match="cannot open portforward of VirtualMachineInstance default/web: no"):
        websocket.opened(api, VMI, "web", "portforward", PLAIN)
    assert api.ask(VMI, "web", "sev") == {"kind": "Told", "asked": None}


def test_a_request_may_have_a_body(api: Api) -> None:
    assert api.ask(VMI, "web", "sev", {"nonce": "x"})["asked"] == {"nonce": "x"}


def test_a_subresource_that_is_not_served_is_named(api: Api) -> None:
    with pytest.raises((NotFound, Unavailable)):
        api.ask(VMI, "web", "memorydump")
