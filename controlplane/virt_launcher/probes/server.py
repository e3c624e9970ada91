# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers the kubelet's probes that ask the guest's agent, or whether a guest has come (probe.py is what it runs).

A liveness probe that fails ends the guest, so it fails only by what the guest did or did not do: an agent that does
not answer, a command that fails. Where nobody could ask (libvirtd is away, no domain yet, a person has paused it)
nothing is concluded.
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
from controlplane.hypervisor.errors import (
    Disconnected,
    HypervisorError,
    InvalidDomain,
    NoSuchDomain,
    TimedOut,
    WrongState,
)
from controlplane.hypervisor.guest import Guest
from controlplane.virt_launcher.guest import libvirtd
from controlplane.virt_launcher.probe import LIVENESS, STARTUP
from controlplane.virt_launcher.probes import agent_exec

_NAME_LIMIT, _NAME_SECONDS = 64, 1.0
"""Of the name of a probe: what is not said in that time, or is longer, is none."""
_SAID_LIMIT = 1000
_NOBODY_ASKED = (Disconnected, TimedOut, NoSuchDomain, WrongState, InvalidDomain)
_FIRST_LOOK_SECONDS, _LAST_LOOK_SECONDS = 0.05, 0.5
"""Between looks at a command that runs in the guest: an agent tells nobody that it has ended."""

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What a probe came to: 0 is good."""

    code: int
    said: str


async def serve_probes(domain: str, probes: tuple[AgentProbe, ...], path: str = layout.PROBE_SOCKET) -> None:
    """Answer for ever. domain: libvirt's name of the guest."""
    link = _Link(domain, socket_uri(libvirtd.SOCKET))
    desk = Desk({one.name: one for one in probes}, link.guest)
    try:
        async with await asyncio.start_unix_server(desk.serve, path, limit=_NAME_LIMIT) as server:
            await server.serve_forever()
    finally:
        await link.close()


class Desk:
    """Takes the questions, each kind once at a time. find: the guest, None when libvirt has none; HypervisorError."""

    def __init__(self, probes: dict[str, AgentProbe], find: Callable[[], Awaitable[Guest | None]]) -> None:
        self._probes, self._find = probes, find
        self._asked: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection: a name, then a number and a sentence."""
        with contextlib.suppress(OSError, ValueError):  # it went away, or says more than a name
            async with asyncio.timeout(_NAME_SECONDS):
                name = (await reader.readline()).decode(errors="replace").strip()
            answer = await self._answer(name)
            writer.write(f"{answer.code} {answer.said}\n".encode(errors="replace"))
            await writer.drain()
        writer.close()

    async def _answer(self, name: str) -> Answer:
        probe = self._probes.get(name)
        if probe is None:
            return Answer(2, "this machine has no such probe")
        if name in self._asked:
            return _unheard(probe, "the question before this one is not answered yet")
        self._asked.add(name)
        try:
            return await answer_probe(probe, self._find)
        finally:
            self._asked.discard(name)


async def answer_probe(probe: AgentProbe, find: Callable[[], Awaitable[Guest | None]]) -> Answer:
    """Ask the guest's agent what a probe asks."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            guest = await find()
            state = None if guest is None else await guest.state()
    except TimeoutError:
        return _unheard(probe, "libvirtd does not answer")
    except HypervisorError as error:
        return _unheard(probe, str(error))
    if guest is None or state is None or not state.life.is_up:
        return _unheard(probe, "the guest does not run yet")
    if state.life is Life.PAUSED:
        return _unheard(probe, "the guest is paused")
    if probe.name == STARTUP:
        return Answer(0, "the guest goes on")
    return await _ask_agent(probe, guest)


async def _ask_agent(probe: AgentProbe, guest: Guest) -> Answer:
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            return await _ask(probe, guest)
    except TimeoutError:
        return Answer(1, f"no answer from the guest within {probe.timeout_seconds} s")
    except _NOBODY_ASKED as error:
        return _unheard(probe, str(error))
    except (HypervisorError, agent_exec.AnswerError) as error:  # the agent is silent, or says no
        return Answer(1, " ".join(str(error).split())[:_SAID_LIMIT])


async def _ask(probe: AgentProbe, guest: Guest) -> Answer:
    if not probe.command:
        await _tell(guest, agent_exec.PING, probe)
        return Answer(0, "the guest agent answers")
    pid = agent_exec.read_started(await _tell(guest, agent_exec.start_command(probe.command), probe))
    pause = _FIRST_LOOK_SECONDS
    while (ended := agent_exec.read_status(await _tell(guest, agent_exec.ask_status(pid), probe))) is None:
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LAST_LOOK_SECONDS)
    return Answer(min(ended.exit_code, 255), f"the command ended with exit code {ended.exit_code}")


async def _tell(guest: Guest, command: str, probe: AgentProbe) -> str:
    return await guest.ask_agent(command, probe.timeout_seconds)


def _unheard(probe: AgentProbe, because: str) -> Answer:
    """Conclude nothing: no reason to end a guest, nor to call it ready."""
    return Answer(0 if probe.name == LIVENESS else 1, because)


class _Link:
    """A connection of its own to libvirtd, made when the first probe comes and again when it was lost."""

    def __init__(self, domain: str, uri: str) -> None:
        self._domain, self._uri = domain, uri
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()

    async def guest(self) -> Guest | None:
        """Return the guest; None when libvirt knows none. HypervisorError."""
        async with self._lock:
            if self._connection is None:
                self._connection = await open_connection(self._uri, keepalive_seconds=0)
            try:
                return await self._connection.guest(self._domain)
            except HypervisorError:
                await self._drop()
                raise

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        gone, self._connection = self._connection, None
        if gone is not None:
            with contextlib.suppress(HypervisorError):
                await gone.close()
