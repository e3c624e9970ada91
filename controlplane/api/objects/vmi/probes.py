# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Liveness and readiness probes of a machine. Types only.

controlplane.virt_controller.vmi.probes translates them into probes of the launcher Pod.
"""

from __future__ import annotations

from typing import Annotated

from controlplane.api.objects.meta import Empty, Node
from controlplane.api.schema.bounds import bounded, one_of

Port = Annotated[int, bounded(minimum=1, maximum=65535)]
Seconds = Annotated[int, bounded(minimum=0, maximum=86400)]
Count = Annotated[int, bounded(minimum=0, maximum=1000)]


class HttpHeader(Node, frozen=True, kw_only=True):
    """A header of the request."""

    name: Annotated[
        str, bounded("a header's name, e.g. X-Probe", pattern=r"[A-Za-z0-9-]+", max_length=256, required=True)
    ]
    """Name of the header."""
    value: str = ""
    """Its value."""


class HttpGet(Node, frozen=True, kw_only=True):
    """A request that succeeds when the status of the response is 200 to 399."""

    port: Port
    """Port of the guest, a number."""
    path: Annotated[str, bounded(max_length=1024)] = ""
    """Path; / if not set."""
    scheme: Annotated[str, one_of("HTTP", "HTTPS")] = ""
    """HTTP (default) or HTTPS; a certificate is not verified."""
    http_headers: Annotated[tuple[HttpHeader, ...], bounded(max_items=32)] = ()
    """Headers of the request."""


class TcpSocket(Node, frozen=True, kw_only=True):
    """A connection that succeeds when the guest accepts it."""

    port: Port
    """Port of the guest, a number."""


class Exec(Node, frozen=True, kw_only=True):
    """A command that the guest agent runs in the guest, without a shell; it succeeds with exit code 0."""

    command: Annotated[tuple[Annotated[str, bounded(max_length=1024)], ...], bounded(max_items=64)] = ()
    """Program and arguments, one word each."""


class Probe(Node, frozen=True, kw_only=True):
    """A check that the kubelet repeats. Exactly one of exec, guestAgentPing, httpGet, tcpSocket."""

    exec: Exec | None = None
    """Run a command in the guest, by the guest agent."""
    guest_agent_ping: Empty | None = None
    """Ask whether the guest agent responds."""
    http_get: HttpGet | None = None
    """Send an HTTP request to the guest."""
    tcp_socket: TcpSocket | None = None
    """Connect to a port of the guest."""
    initial_delay_seconds: Seconds = 0
    """Seconds from the start of the launcher to the first check."""
    timeout_seconds: Seconds = 0
    """Seconds that a response may take; 1 if not set."""
    period_seconds: Seconds = 0
    """Seconds between checks; 10 if not set."""
    success_threshold: Count = 0
    """Successful checks in a row until the probe succeeds; 1 if not set, and always 1 for a livenessProbe."""
    failure_threshold: Count = 0
    """Failed checks in a row until the probe fails; 3 if not set."""

    @property
    def handlers(self) -> tuple[str, ...]:
        """Names of the declared handlers, as in a manifest. A valid probe has exactly one."""
        handlers = {
            "exec": self.exec,
            "guestAgentPing": self.guest_agent_ping,
            "httpGet": self.http_get,
            "tcpSocket": self.tcp_socket,
        }
        return tuple(name for name, handler in handlers.items() if handler is not None)
