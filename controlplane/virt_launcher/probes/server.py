# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out the kubelet's probes that need the guest's agent, or the arrival of a migrated guest. The kubelet runs
probe.py.

A failed liveness probe ends the guest, so it fails only if the guest is the cause: an agent that does not respond, a
command that fails. If the agent cannot be queried (no libvirtd, no domain yet, paused by a user), the probe is
inconclusive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from controlplane.api.launch_plan import AgentProbe
from controlplane.domain import layout
from controlplane.domain.state import Life
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import (
    Disconnected,
    HypervisorError,
    InvalidDomain,
    NoSuchDomain,
    TimedOut,
    WrongState,
)
from controlplane.virt_launcher.guest import libvirtd
from controlplane.virt_launcher.probe import LIVENESS, STARTUP
from controlplane.virt_launcher.probes import agent_exec

_NAME_LIMIT, _NAME_SECONDS = 64, 1.0
"""Limits of the length of a probe's name, and of the time to send it."""
_TEXT_LIMIT = 1000
_INCONCLUSIVE_ERRORS = (Disconnected, TimedOut, NoSuchDomain, WrongState, InvalidDomain)
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.05, 0.5
"""First and longest pause between status requests for a running command: an agent does not report its end."""

log = logging.getLogger(__name__)


class ProbeResult(NamedTuple):
    """The result of a probe: exit code 0 for success, and a sentence."""

    code: int
    text: str


async def serve_probes(domain: str, probes: tuple[AgentProbe, ...], path: str = layout.PROBE_SOCKET) -> None:
    """Serve probes until cancelled. domain: libvirt's name of the guest."""
    connector = _Connector(domain, socket_uri(libvirtd.SOCKET))
    server = ProbeServer({probe.name: probe for probe in probes}, connector.guest)
    try:
        async with await asyncio.start_unix_server(server.serve, path, limit=_NAME_LIMIT) as listener:
            await listener.serve_forever()
    finally:
        await connector.close()


class ProbeServer:
    """Runs the probes, each one at most once at a time. find: returns the guest, or None; raises HypervisorError."""

    def __init__(self, probes: dict[str, AgentProbe], find: Callable[[], Awaitable[Domain | None]]) -> None:
        self._probes, self._find = probes, find
        self._running: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: read a probe's name, write an exit code and a sentence."""
        with contextlib.suppress(OSError, ValueError):  # it disconnected, or sent more than a name
            async with asyncio.timeout(_NAME_SECONDS):
                name = (await reader.readline()).decode(errors="replace").strip()
            result = await self._run(name)
            writer.write(f"{result.code} {result.text}\n".encode(errors="replace"))
            await writer.drain()
        writer.close()

    async def _run(self, name: str) -> ProbeResult:
        probe = self._probes.get(name)
        if probe is None:
            return ProbeResult(2, "this machine has no such probe")
        if name in self._running:
            return _inconclusive(probe, "the previous probe is still running")
        self._running.add(name)
        try:
            return await run_probe(probe, self._find)
        finally:
            self._running.discard(name)


async def run_probe(probe: AgentProbe, find: Callable[[], Awaitable[Domain | None]]) -> ProbeResult:
    """Run a probe on the guest."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            guest = await find()
            state = None if guest is None else await guest.state()
    except TimeoutError:
        return _inconclusive(probe, "libvirtd does not respond")
    except HypervisorError as error:
        return _inconclusive(probe, str(error))
    if guest is None or state is None or not state.life.is_up:
        return _inconclusive(probe, "the guest does not run yet")
    if state.life is Life.PAUSED:
        return _inconclusive(probe, "the guest is paused")
    if probe.name == STARTUP:
        return ProbeResult(0, "the guest runs")
    return await _probe_agent(probe, guest)


async def _probe_agent(probe: AgentProbe, guest: Domain) -> ProbeResult:
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            return await _run_on_agent(probe, guest)
    except TimeoutError:
        return ProbeResult(1, f"no response of the guest within {probe.timeout_seconds} s")
    except _INCONCLUSIVE_ERRORS as error:
        return _inconclusive(probe, str(error))
    except (HypervisorError, agent_exec.ResponseError) as error:  # the agent is silent, or refuses
        return ProbeResult(1, " ".join(str(error).split())[:_TEXT_LIMIT])


async def _run_on_agent(probe: AgentProbe, guest: Domain) -> ProbeResult:
    if not probe.command:
        await _send(guest, agent_exec.PING, probe)
        return ProbeResult(0, "the guest agent responds")
    pid = agent_exec.read_started(await _send(guest, agent_exec.start_command(probe.command), probe))
    pause = _FIRST_POLL_SECONDS
    while (ended := agent_exec.read_status(await _send(guest, agent_exec.query_status(pid), probe))) is None:
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LAST_POLL_SECONDS)
    return ProbeResult(min(ended.exit_code, 255), f"the command ended with exit code {ended.exit_code}")


async def _send(guest: Domain, command: str, probe: AgentProbe) -> str:
    return await guest.ask_agent(command, probe.timeout_seconds)


def _inconclusive(probe: AgentProbe, because: str) -> ProbeResult:
    """Return an inconclusive result: the guest is neither ended nor reported as ready."""
    return ProbeResult(0 if probe.name == LIVENESS else 1, because)


class _Connector:
    """A separate connection to libvirtd. It is opened at the first probe, and again after it was lost."""

    def __init__(self, domain: str, uri: str) -> None:
        self._domain, self._uri = domain, uri
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()

    async def guest(self) -> Domain | None:
        """Return the guest; None when libvirt has none. HypervisorError."""
        async with self._lock:
            if self._connection is None:
                self._connection = await open_connection(self._uri, keepalive_seconds=0)
            try:
                return await self._connection.guest(self._domain)
            except HypervisorError:
                await self._drop()
                raise

    async def close(self) -> None:
        """Close the connection."""
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(HypervisorError):
                await connection.close()
