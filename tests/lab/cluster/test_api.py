# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection of the lab's API client."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from lab.cluster import api
from lab.cluster.api import IDLE_SECONDS, Api


class Connection:
    """A connection that answers every request with an empty object."""

    sock = None
    status = 200

    def request(self, *_unused: object, **_options: object) -> None:
        """Send nothing."""

    def getresponse(self) -> Connection:
        return self

    def read(self) -> bytes:
        return b"{}"

    def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize(("idle", "opened"), [(IDLE_SECONDS - 1, 1), (IDLE_SECONDS + 1, 2)], ids=["used", "idle"])
def test_a_connection_that_was_idle_for_long_is_opened_again(
    idle: float, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server closes it at any time, so a request on it may have no answer."""
    now, connections = [1000.0], list[Connection]()

    def connect(*_unused: object, **_options: object) -> Connection:
        connections.append(Connection())
        return connections[-1]

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ssl, "create_default_context", lambda **_options: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda *_unused: None)
    monkeypatch.setattr(api.http.client, "HTTPSConnection", connect)
    client = Api("https://10.99.0.1:6443", Path("/pki"))

    client.get("/a")
    now[0] += idle
    client.get("/a")

    assert len(connections) == opened
