# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to an API server with the standard library: one persistent connection, bounded responses, no redirects.

Importing http.client and ssl takes 11 ms, the kubernetes library 140. Not thread-safe: use one Transport per thread;
`clone` shares the TLS context.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import random
import socket
import ssl
import tempfile
import time
from typing import Any
from urllib.parse import urlsplit

from . import objects
from .deadline import Response, Timeouts
from .endpoint import Endpoint
from .errors import Silent, TimeIsUp, Unavailable, cut

JSON = "application/json"
TIMEOUT_SECONDS = 30
"""Timeout of one attempt, from the first byte sent to the last byte read."""
ANSWER_LIMIT = 64 << 20
"""Bytes of one response; enough for 500 objects of the maximum size."""
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 4.0, 4.0)
"""Pauses before a retry, unless the server asks for another pause."""
LONGEST_PAUSE_SECONDS = 5
ANSWER_SECONDS = (10.0, 20.0, 30.0)
"""Timeouts without a byte in a read, for the first, second and last attempt, each over a new connection. A dropped
connection sends nothing; a slow server gets enough time in the last attempt."""
LATE_SECONDS = 5.0
"""Time after a deadline, to finish a request and read a last time."""
_REPEATABLE = ("GET", "PATCH")
"""Methods that are safe to repeat. Our patches declare a state, so they are idempotent."""


class Transport:
    """One connection to one API server, opened at the first request."""

    def __init__(self, endpoint: Endpoint, context: ssl.SSLContext | None = None) -> None:
        self._endpoint = endpoint
        self._url = urlsplit(endpoint.server)
        self._context = context or (tls_context(endpoint) if self._url.scheme == "https" else None)
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        """Socket of the newest response. The connection drops it if the response ends with the connection."""
        self._within = Timeouts()
        """Of the newest connection."""
        self.deadline: float | None = None
        """By time.monotonic: no retry after it, and no request LATE_SECONDS later."""

    @property
    def origin(self) -> str:
        """Scheme, host and port of the API server's address."""
        return f"{self._url.scheme}://{self._url.netloc}"

    def clone(self) -> Transport:
        """Return a transport with a connection of its own."""
        transport = Transport(self._endpoint, self._context)
        transport.deadline = self.deadline
        return transport

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self, method: str, target: str, body: Any = None, content_type: str = JSON, *, accept: str = JSON
    ) -> tuple[int, Any]:
        """Return status and decoded JSON: None without a body, the text of a refusal that is not JSON.

        accept: the content type of a success; if it is not JSON, its body is returned as bytes.
        """
        payload = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        silences = 0
        for pause in (*PAUSES_SECONDS, None):
            seconds, retry_after, failure = self._seconds(), "", None
            deadline = time.monotonic() + seconds
            if method == "GET":  # a write may wait long for admission webhooks
                seconds = min(seconds, ANSWER_SECONDS[silences])
            try:
                response = self._send(method, target, payload, self._headers(content_type, payload, accept), seconds)
                self._within.until = deadline
                raw = self._read(response, deadline)
            except Unavailable as error:
                silences += isinstance(error, Silent)
                is_over = pause is None or silences == len(ANSWER_SECONDS)
                if is_over or method not in _REPEATABLE or not _was_lost(error):
                    raise
                failure = error
            else:
                if pause is None or not _may_repeat(method, response.status):
                    break
                retry_after = response.getheader("Retry-After", "")
            if not self._paused(_spread(pause, retry_after)):
                if failure is not None:
                    raise failure
                break
        if accept != JSON and response.status == 200:
            return 200, raw
        return response.status, self._decoded(response, raw)

    def ask(
        self,
        target: str,
        timeout_seconds: float,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        begin_seconds: float = ANSWER_SECONDS[0],
    ) -> http.client.HTTPResponse:
        """Send a GET; return the response with its body unread.

        timeout_seconds: for the whole response. begin_seconds: until it begins.
        """
        begins = min(timeout_seconds, begin_seconds)
        response = self._send("GET", target, None, [*self._headers(), *headers], begins)
        self._within.allow(timeout_seconds)
        return response

    def whole(self, response: http.client.HTTPResponse) -> tuple[int, Any]:
        """Read a response to its end; return the same as `request`."""
        seconds = self._seconds()
        self._within.allow(seconds)
        return response.status, self._decoded(response, self._read(response, time.monotonic() + seconds))

    def release(self) -> http.client.HTTPConnection | None:
        """Give the connection to the caller. The next request opens another."""
        connection, self._connection = self._connection, None
        self._within.until = None
        if self._socket is not None:
            self._socket.settimeout(TIMEOUT_SECONDS)
        return connection

    def _seconds(self) -> float:
        """Return the timeout of a request that is sent now."""
        if self.deadline is None:
            return TIMEOUT_SECONDS
        remaining = self.deadline + LATE_SECONDS - time.monotonic()
        if remaining <= 0:
            raise TimeIsUp(f"no time is left to ask {self._endpoint.server}")
        return min(TIMEOUT_SECONDS, remaining)

    def _paused(self, seconds: float) -> bool:
        """Pause, unless the pause would end after the deadline; return whether it paused."""
        if self.deadline is not None and time.monotonic() + seconds > self.deadline:
            return False
        time.sleep(seconds)
        return True

    def _send(
        self, method: str, target: str, payload: bytes | None, headers: list[tuple[str, str]], timeout: float
    ) -> http.client.HTTPResponse:
        was_open = self._connection is not None
        try:
            connection = self._connection or self._open(timeout)
            connection.timeout = timeout
            self._within.allow(timeout)
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.putrequest(method, self._path(target), skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(payload)
            self._socket = connection.sock
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            is_reached = self._connection is not None and self._connection.sock is not None
            self.close()
            if was_open and method == "GET" and not isinstance(error, TimeoutError):
                return self._send(method, target, payload, headers, timeout)  # the server closed an idle connection
            raise self._unavailable(error, is_reached=is_reached) from error

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        proxy = self._proxy()
        host, port = self._url.hostname or "", self._url.port or (443 if self._context else 80)
        at = proxy or (host, port)
        if self._context is not None:
            connection: http.client.HTTPConnection = _Https(
                *at, timeout=timeout, context=self._context, server_name=self._endpoint.server_name or host
            )
            if proxy:
                connection.set_tunnel(host, port, headers=dict(self._endpoint.proxy_headers))
        else:
            connection = http.client.HTTPConnection(*at, timeout=timeout)
        self._connection, self._within = connection, Timeouts()
        connection.response_class = functools.partial(Response, self._within)  # type: ignore[assignment]
        return connection

    def _proxy(self) -> tuple[str, int] | None:
        if not self._endpoint.proxy:
            return None
        from . import proxy

        if proxy.is_exempt(self._url.hostname or "", self._endpoint.no_proxy or ""):
            return None
        return proxy.at(proxy.parse(self._endpoint.proxy))

    def _path(self, target: str) -> str:
        whole = self._url.path + target
        if self._context is None and self._proxy():
            return f"http://{self._url.netloc}{whole}"
        return whole

    def _headers(
        self, content_type: str = "", payload: bytes | None = None, accept: str = JSON
    ) -> list[tuple[str, str]]:
        accepted = accept if accept == JSON else f"{accept}, {JSON}, */*"  # refusals are JSON or text
        headers = [("Accept", accepted), ("User-Agent", self._endpoint.user_agent)]
        headers += self._endpoint.headers.items()
        headers += [("Impersonate-Group", group) for group in self._endpoint.groups]
        if payload is not None:
            headers += [("Content-Type", content_type), ("Content-Length", str(len(payload)))]
        authorization = self._endpoint.authorization()
        if authorization:
            headers.append(("Authorization", authorization))
        return headers

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        parts, size = [], 0
        try:
            while chunk := response.read1(1 << 20):
                parts.append(chunk)
                size += len(chunk)
                if size > ANSWER_LIMIT or time.monotonic() > deadline:
                    self.close()
                    problem = "longer than 64 MiB" if size > ANSWER_LIMIT else "not complete in time"
                    raise Unavailable(f"unexpected response from {self._endpoint.server}: {problem}")
            response.read()  # read1 leaves a response open at its end, and with it the connection
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: a chunk of negative size
            self.close()
            raise self._unavailable(error, is_reached=True) from error
        finally:
            response.close()  # a response that ends with its connection owns the socket
        return b"".join(parts)

    def _decoded(self, response: http.client.HTTPResponse, raw: bytes) -> Any:
        kind = response.getheader("Content-Type", "")
        is_redirect = 300 <= response.status < 400
        if kind.startswith("application/json") and not is_redirect:
            try:
                return objects.json_of(raw) if raw.strip() else None
            except ValueError:
                pass
        elif response.status < 300 and not raw.strip():
            return None
        elif response.status >= 400 and kind.startswith("text/plain"):
            return cut(raw[:2000].decode(errors="replace").strip())
        from . import failures

        raise failures.unexpected(self._endpoint.server, response)

    def _unavailable(self, error: Exception, *, is_reached: bool) -> Unavailable:
        from . import failures  # most requests succeed

        return failures.unavailable(self._endpoint.server, self._proxy(), error, is_reached=is_reached)


def _spread(pause: float, retry_after: str) -> float:
    """Return the pause in seconds: as long as the response asks, or about as long as our own.

    The pause is random, so that tasks that were refused together do not retry together. A response that asks for no
    pause (Retry-After: 0) gets our own.
    """
    spread = pause * random.uniform(0.5, 1.5)  # noqa: S311 - nothing secret
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10
    return min(int(retry_after), LONGEST_PAUSE_SECONDS) if is_number and int(retry_after) else spread


def _may_repeat(method: str, status: int) -> bool:
    """Tell whether a retry may succeed and is safe. The server did not carry out a rate-limited request."""
    return status == 429 or (status in (502, 503, 504) and method in _REPEATABLE)


def _was_lost(error: Unavailable) -> bool:
    """Tell whether the connection was closed or dropped. False for a server that cannot be reached."""
    return isinstance(error, Silent) or isinstance(
        error.__cause__, (ConnectionResetError, BrokenPipeError, http.client.IncompleteRead)
    )


class _Https(http.client.HTTPSConnection):
    """An HTTPS connection that expects another name in the certificate (tls-server-name)."""

    def __init__(self, host: str, port: int, *, timeout: float, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._tls = context
        self._server_name = server_name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Return the TLS settings. The system's CAs (20 ms) are read only if the cluster names none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if not endpoint.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif endpoint.ca_data or endpoint.ca_file:
            context.load_verify_locations(
                cafile=None if endpoint.ca_data else endpoint.ca_file, cadata=endpoint.ca_data
            )
        else:
            context.load_default_certs()
        _load_client_certificate(context, endpoint)
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or type(error).__name__
        files = ", ".join(file for file in (endpoint.ca_file, endpoint.cert_file, endpoint.key_file) if file)
        raise Unavailable(f"cannot use the certificates for {endpoint.server} ({files or 'inline'}): {text}") from error
    return context


def _load_client_certificate(context: ssl.SSLContext, endpoint: Endpoint) -> None:
    """Load the key pair. ssl reads only files, so inline PEM is written to a private directory."""
    if endpoint.cert_data or endpoint.key_data:
        with tempfile.TemporaryDirectory(prefix="virtops-") as folder:
            pair = []
            for name, data, file_path in (
                ("crt", endpoint.cert_data, endpoint.cert_file),
                ("key", endpoint.key_data, endpoint.key_file),
            ):
                path = os.path.join(folder, name)
                if data:
                    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                        file.write(data)
                pair.append(path if data else file_path)
            context.load_cert_chain(pair[0] or "", pair[1])
    elif endpoint.cert_file:
        context.load_cert_chain(endpoint.cert_file, endpoint.key_file)
