# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small API client for the lab's own few objects; standard library only. Not for the product."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.errors import ApiError

Object = dict[str, Any]

IDLE_SECONDS = 60.0
"""The API server closes a connection that has been idle for 90 s."""


class Api:
    """One connection, opened again after it breaks. Not thread-safe."""

    def __init__(self, server: str, certificates: Path, *, client: str = "admin", timeout_seconds: float = 10) -> None:
        parts = urlsplit(server)
        self._connection: http.client.HTTPSConnection | None = None
        self._used_at = 0.0
        self._host, self._port, self._timeout = parts.hostname or "", parts.port or 443, timeout_seconds
        self._tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        self._tls.load_cert_chain(certificates / f"{client}.crt", certificates / f"{client}.key")

    def is_ready(self) -> bool:
        try:
            return self._exchange("GET", "/readyz", None, "")[0] == 200
        except ApiError:
            return False

    def get(self, path: str) -> Object | None:
        """Read an object or a list. None if it does not exist."""
        status, body = self._exchange("GET", path, None, "")
        return None if status == 404 else self._decode("GET", path, status, body)

    def read(self, path: str) -> bytes:
        """Read what is not JSON, such as a Pod's log."""
        status, body = self._exchange("GET", path, None, "")
        if status >= 300:
            self._decode("GET", path, status, body)
        return body

    def create(self, path: str, obj: Object) -> bool:
        """Create an object in a collection. False if an object of this name exists."""
        if self.get(f"{path}/{obj['metadata']['name']}") is not None:
            return False
        status, body = self._exchange("POST", path, obj, "application/json")
        if status == 409:
            return False
        self._decode("POST", path, status, body)
        return True

    def patch(self, path: str, change: Object) -> Object:
        status, body = self._exchange("PATCH", path, change, "application/merge-patch+json")
        return self._decode("PATCH", path, status, body)

    def delete(self, path: str) -> bool:
        """Delete an object. False if it did not exist."""
        status, body = self._exchange("DELETE", path, None, "")
        if status == 404:
            return False
        self._decode("DELETE", path, status, body)
        return True

    def watch(self, path: str, *, resource_version: str, seconds: int = 300) -> Iterator[Object]:
        """Yield watch events until the server ends the watch. Raises ApiError 410 if the version is too old."""
        connection = self._connect(timeout_seconds=seconds + 30)
        query = f"{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={resource_version}"
        try:
            connection.request("GET", query)
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError(f"watch {path}: {response.status} {response.reason}", status=response.status)
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(
                        f"watch {path}: {event['object'].get('message')}", status=event["object"].get("code", 0)
                    )
                yield event
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiError(f"watch {path}: {error}", status=0) from error
        finally:
            connection.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        """Close the connection with the last reference to the client."""
        self.close()

    def _connect(self, *, timeout_seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_seconds, context=self._tls)

    def _exchange(self, method: str, path: str, body: Object | None, kind: str) -> tuple[int, bytes]:
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        if self._connection is None:
            self._connection = self._connect(timeout_seconds=self._timeout)
        try:
            text = None if body is None else json.dumps(body)
            self._connection.request(method, path, body=text, headers={"Content-Type": kind} if kind else {})
            if self._connection.sock is not None:
                self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            response = self._connection.getresponse()
            result = response.status, response.read()
            self._used_at = time.monotonic()
            return result
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ApiError(f"{method} {path}: no response from the API server: {error}", status=0) from error

    def _decode(self, method: str, path: str, status: int, body: bytes) -> Object:
        try:
            decoded: Object = json.loads(body)
        except ValueError:
            decoded = {"message": body[:200].decode(errors="replace")}
        if status >= 300:
            raise ApiError(f"{method} {path}: {status}: {decoded.get('message')}", status=status)
        return decoded
