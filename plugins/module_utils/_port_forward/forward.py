# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A port of this machine that leads to a port of a guest. Each connection has its own stream and its own thread."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from types import TracebackType

from .._client.api import Api, Resource
from .._client.errors import BadArgument, VirtError
from .._client.websocket_frames import Closed
from .open_port import open_port, why_ended
from .relay import RESET, Relay, Stopped

ADDRESS = "127.0.0.1"
CONNECTIONS = 64
"""Open at the same time; the newest beyond is closed. A machine of our control plane has at most 16 streams."""
ERRORS_KEPT = 10
JOIN_SECONDS = 5.0


class Forward:
    """Listens from `start` to `close`, which ends its connections; a context manager calls both."""

    def __init__(self, api: Api, resource: Resource, name: str, port: int, *, local_port: int = 0) -> None:
        """Take the local port, 0 for a free one; it refuses connections until `start`. BadArgument: it is in use.

        resource: instances or machines of the aggregated API (kinds.operations).
        """
        self.connections = self.to_guest = self.from_guest = 0
        """Connections that were accepted; bytes of those that have ended."""
        self.errors: list[str] = []
        """Why connections have failed, the newest last."""
        self.has_failed_last = False
        """Of the connections that have ended, the newest failed."""
        self._api, self._resource, self._name, self._port = api, resource, name, port
        self._listener = _bound(local_port)
        self._stopped, self._stopper = socket.socketpair()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._idle_since = time.monotonic()

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port for local clients."""
        host, port = self._listener.getsockname()
        return host, port

    def __enter__(self) -> Forward:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Accept connections. BadArgument: another program has begun to listen at the port."""
        try:
            self._listener.listen()
        except OSError as error:
            raise _in_use(self.address[1], error) from error
        self._idle_since = time.monotonic()
        self._acceptor.start()

    def close(self) -> None:
        """End all connections, and release the local port."""
        self._stopper.close()
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in (self._acceptor, *self._threads):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._listener.close()
        self._stopped.close()

    def wait(self, seconds: float, idle_seconds: float) -> bool:
        """Wait until no connection was open for idle_seconds; at most `seconds`. Return whether it was idle."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                now = time.monotonic()
                idle_at = deadline if self._threads else self._idle_since + idle_seconds
                if now >= min(idle_at, deadline):
                    return idle_at < deadline
                self._changed.wait(min(idle_at, deadline) - now)

    def _accept(self) -> None:
        while True:
            ready, _unused, _unused2 = select.select([self._listener, self._stopped], [], [])
            if self._stopped in ready:
                return
            with contextlib.suppress(OSError):  # the client is gone already
                local, _address = self._listener.accept()
                self._start(local)

    def _start(self, local: socket.socket) -> None:
        local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=self._serve, args=(local,), daemon=True)
        with self._changed:
            if len(self._threads) >= CONNECTIONS:
                _reset(local)
                self._note(f"{ADDRESS}:{self.address[1]} has {CONNECTIONS} open connections; close some of them")
                return
            self._threads.add(thread)
            self.connections += 1
            self._changed.notify_all()
        thread.start()

    def _serve(self, local: socket.socket) -> None:
        failure = ""
        relay = None
        api = self._api.clone()
        try:
            relay = Relay(local, open_port(api, self._resource, self._name, self._port), self._stopped)
            relay.run()
        except Closed as closed:
            failure = why_ended(self._resource, self._name, self._port, closed)
        except VirtError as error:
            failure = error.message
        except Stopped:
            pass
        finally:
            _reset(local)
            api.close()
            self._end(relay, failure)

    def _end(self, relay: Relay | None, failure: str) -> None:
        with self._changed:
            if relay is not None:
                self.to_guest += relay.to_guest
                self.from_guest += relay.from_guest
            self.has_failed_last = bool(failure)
            if failure:
                self._note(failure)
            self._threads.discard(threading.current_thread())
            self._idle_since = time.monotonic()
            self._changed.notify_all()

    def _note(self, failure: str) -> None:
        others = [error for error in self.errors if error != failure]
        self.errors = [*others, failure][-ERRORS_KEPT:]


def _bound(local_port: int) -> socket.socket:
    listener = socket.socket()
    try:
        _bind(listener, local_port)
    except OSError as error:
        listener.close()
        raise _in_use(local_port, error) from error
    return listener


def _bind(listener: socket.socket, local_port: int) -> None:
    """Take the port; with SO_REUSEADDR only if connections on it have just ended: others could then take it as well."""
    try:
        listener.bind((ADDRESS, local_port))
    except OSError:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, local_port))


def _in_use(local_port: int, error: OSError) -> BadArgument:
    text = f"local_port: cannot listen on {ADDRESS}:{local_port}: {error.strerror}; choose another port"
    return BadArgument(text)


def _reset(local: socket.socket) -> None:
    """Close a connection so that its client sees that it was cut. No effect on a closed one."""
    with contextlib.suppress(OSError):
        local.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    local.close()
