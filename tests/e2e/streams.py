# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stream of a machine (console, vnc, portforward) through the API server, as upstream's clients open it."""

from __future__ import annotations

import base64
import http.client
import ssl
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import websocket
import yaml

from tests.e2e.console import LIMIT_SECONDS

PROTOCOL = "plain.kubevirt.io"
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}/{}"


class Stream:
    """An open stream. It reads only while a test waits for something."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection = connection
        self.seen = b""

    def send(self, data: bytes) -> None:
        self._connection.send_binary(data)

    def expect(self, text: bytes) -> None:
        """Read until a text comes."""
        while text not in self.seen:
            opcode, data = self._connection.recv_data()
            assert opcode == websocket.ABNF.OPCODE_BINARY, f"the stream ended before {text!r}: {data!r}, {self.seen!r}"
            self.seen += data
        self.seen = self.seen.partition(text)[2]

    def end(self) -> tuple[int, str]:
        """Wait for the close frame. Return its code and reason."""
        while True:
            opcode, data = self._connection.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()


@contextmanager
def stream(kubeconfig: Path, name: str, what: str, namespace: str = "default") -> Iterator[Stream]:
    """Open console, vnc or portforward/PORT of an instance."""
    config = yaml.safe_load(kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    url = server["server"].replace("https:", "wss:") + PATH.format(namespace, name, what)
    options: dict[str, Any] = {"sslopt": {"context": client_context(server, user)}, "suppress_origin": True}
    connection = websocket.create_connection(url, timeout=LIMIT_SECONDS, subprotocols=[PROTOCOL], **options)
    try:
        yield Stream(connection)
    finally:
        connection.close()
        connection.shutdown()  # close leaves the socket open after a close frame of the server


def refusal(kubeconfig: Path, name: str, what: str, namespace: str = "default") -> tuple[int, str]:
    """Return the code and the body of the response to a stream that is not opened."""
    try:
        with stream(kubeconfig, name, what, namespace):
            raise AssertionError(f"{what} of {name} was opened")
    except websocket.WebSocketBadStatusException as error:
        return error.status_code, (error.resp_body or b"").decode()


def get(kubeconfig: Path, name: str, what: str, namespace: str = "default") -> tuple[int, str, bytes]:
    """Return the code, the content type and the body of a subresource that is no stream."""
    config = yaml.safe_load(kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    at = urlsplit(server["server"])
    connection = http.client.HTTPSConnection(
        at.hostname or "", at.port, timeout=LIMIT_SECONDS, context=client_context(server, user)
    )
    with closing(connection):
        connection.request("GET", PATH.format(namespace, name, what))
        response = connection.getresponse()
        return response.status, response.headers.get_content_type(), response.read()


def client_context(server: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    """Return the TLS context of a client: cluster and user are those of a kubeconfig."""
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:
        for part in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(user[part]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context
