# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes with behaviour: a launcher with its libvirtd and guest, an API server, a clock, caches."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import shutil
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from controlplane.api.objects.resources import Key, Resource
from controlplane.domain import layout
from controlplane.domain.agent import REQUIRED
from controlplane.domain.state import Life, State
from controlplane.domain.statistics import Statistics
from controlplane.engine.errors import Conflict, NotFound
from controlplane.engine.ports import Json
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, WrongState
from controlplane.hypervisor.events import AgentChanged, ConnectionClosed, Event, EventQueue, LifecycleChanged
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.ports import Result
from tests.controlplane.virt_handler.builders import ETH0, NOW, POD_UID
from tests.support.store import merged


class FakeClock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return NOW + self.seconds - 1000.0


LEASE_SECONDS = 40


class FakeHeartbeat:
    """A heartbeat that always gets through, unless the node is cut off."""

    duration_seconds = LEASE_SECONDS

    def __init__(self, clock: FakeClock) -> None:
        self.silences = 0
        self.is_cut_off = False
        self._clock = clock
        self._last = clock.monotonic()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def last_beat(self) -> float | None:
        if not self.is_cut_off:
            self.beat()
        return self._last

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def beat(self) -> None:
        """Renew the Lease. After a silence, notify the subscribers as kube.lease does."""
        was_silent = self.is_cut_off and self._clock.monotonic() - self._last >= LEASE_SECONDS
        self.is_cut_off, self._last = False, self._clock.monotonic()
        if was_silent:
            self.silences += 1
            for callback in self._callbacks:
                callback()


AGENTS_CHANNEL = (
    "<devices><channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0' state='connected'/></channel>"
    "</devices>"
)
GOOD_ANSWERS: dict[str, Any] = {
    "guest-info": {
        "version": "9.2.0",
        "supported_commands": [{"name": name, "enabled": True} for name in sorted(REQUIRED)],
    },
    "guest-get-osinfo": {"id": "debian", "pretty-name": "Debian GNU/Linux 13 (trixie)"},
    "guest-network-get-interfaces": [
        {"name": "lo", "hardware-address": "00:00:00:00:00:00"},
        {
            "name": "enp1s0",
            "hardware-address": "02:00:00:00:00:99",
            "ip-addresses": [{"ip-address-type": "ipv4", "ip-address": "10.0.2.2", "prefix": 24}],
        },
    ],
    "guest-fsfreeze-status": '{"return": "thawed"}',
    "guest-set-time": {},
}


class FakeAgent:
    """A guest agent. answers: result by command. An Exception is raised; a missing command is refused."""

    def __init__(self, **answers: Any) -> None:
        changed = {f"guest-{name.replace('_', '-')}": value for name, value in answers.items()}
        self.answers: dict[str, Any] = {**GOOD_ANSWERS, **changed}
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, command: str) -> str:
        self.asked.append(command)
        await self.may_answer.wait()
        result = self.answers.get(command)
        if result is None:
            raise HypervisorError(f"cannot ask the agent: the command {command} has not been found")
        if isinstance(result, Exception):
            raise result
        return result if isinstance(result, str) else json.dumps({"return": result})


class FakeGuest:
    """A domain that shuts down on request, unless it is deaf."""

    def __init__(self, libvirtd: FakeLibvirtd, xml: str) -> None:
        self._libvirtd = libvirtd
        self._xml = xml
        self.life = State(Life.SHUT_OFF, "unknown")
        self.is_deaf = False
        self.starts = 0
        self.descriptions = 0
        """How often its XML was read."""
        self.agent: FakeAgent | None = None
        self.counters: Statistics | HypervisorError = Statistics({"cpu.time": 1})
        self.screen: bytes | None = b"P6\n1 1\n255\n\0\0\0"
        self.times: list[float] = []
        """What its clock was set to."""

    async def start(self, *, is_paused: bool = False) -> None:
        if self.life.life.is_up:
            raise WrongState("cannot start: it runs")
        if self._libvirtd.start_error is not None:
            await self._fail(self._libvirtd.start_error)
        self.starts += 1
        if not self._libvirtd.is_off_again:
            self.become(State(Life.PAUSED, "user") if is_paused else State(Life.RUNNING, "booted"), "started")

    async def _fail(self, error: HypervisorError) -> None:
        """Fail as libvirt does: QEMU exists until it has read its command line, and is visible meanwhile."""
        if self._libvirtd.while_starting is not None:
            self.become(self._libvirtd.while_starting, "started")
            await asyncio.sleep(0.02)
        self.become(State(Life.SHUT_OFF, "failed"), "stopped")
        raise error

    async def shutdown(self) -> None:
        self._libvirtd.asked.append("shutdown")
        if not self.is_deaf:
            self.become(State(Life.SHUT_OFF, "shutdown"), "stopped")

    async def destroy(self) -> None:
        self._libvirtd.asked.append("destroy")
        self.become(State(Life.SHUT_OFF, "destroyed"), "stopped")

    async def abort_job(self) -> None:
        raise WrongState("no job is active")

    async def kill(self) -> None:
        self._libvirtd.asked.append("kill")
        self.become(State(Life.SHUT_OFF, "destroyed"), "stopped")

    async def pause(self) -> None:
        """As libvirt: a paused guest keeps its reason."""
        self._libvirtd.asked.append("pause")
        if self.life.life is not Life.PAUSED:
            self.become(State(Life.PAUSED, "user"), "suspended")

    async def reset(self) -> None:
        self._libvirtd.asked.append("reset")

    async def reboot(self) -> None:
        self._libvirtd.asked.append("reboot")

    async def resume(self) -> None:
        self._libvirtd.asked.append("resume")
        self.become(State(Life.RUNNING, "unpaused"), "resumed")

    async def set_vcpus(self, count: int) -> None:
        self._libvirtd.asked.append(f"have {count} CPUs")
        if self._libvirtd.can_plug:
            self._xml = self._xml.replace("<features>", f"<vcpu current='{count}'>8</vcpu><features>")

    async def set_memory(self, requested_bytes: int) -> None:
        self._libvirtd.asked.append(f"have {requested_bytes} bytes more")
        if self._libvirtd.can_plug:
            memory = f"<memory><target><requested>{requested_bytes >> 10}</requested></target></memory>"
            self._xml = self._xml.replace("<features>", f"<devices>{memory}</devices><features>")

    async def state(self) -> State:
        return self.life

    async def described(self, read: Callable[[str], Result]) -> Result:
        self.descriptions += 1
        return read(self._xml if self.agent is None else self._xml.replace("</domain>", f"{AGENTS_CHANNEL}</domain>"))

    async def statistics(self) -> Statistics:
        if isinstance(self.counters, HypervisorError):
            raise self.counters
        return self.counters

    async def screenshot(self) -> bytearray:
        if self.screen is None:
            raise WrongState("cannot take a screenshot: no screens")
        return bytearray(self.screen)

    async def ask_agent(self, command: str, seconds: int) -> str:
        if self.agent is None:
            raise AgentSilent("cannot ask the agent: QEMU guest agent is not connected")
        return await self.agent.answer(json.loads(command)["execute"])

    async def set_time(self, now: Callable[[], float], seconds: int) -> None:
        if self.agent is None:
            raise AgentSilent("cannot set the time: QEMU guest agent is not connected")
        await self.agent.answer("guest-set-time")
        self.times.append(now())

    def let_agent(self, agent: FakeAgent | None) -> None:
        """Connect or disconnect the guest agent."""
        self.agent = agent
        self._libvirtd.tell(AgentChanged("domain", agent is not None))

    def become(self, state: State, event: str) -> None:
        """Change the state, and send the event to all connections."""
        self.life = state
        self._libvirtd.tell(LifecycleChanged("domain", event))


class FakeConnection:
    """One connection. Every call fails once it is closed."""

    def __init__(self, libvirtd: FakeLibvirtd) -> None:
        self._libvirtd = libvirtd
        self.events = EventQueue()
        self.is_open = True

    async def guest(self, name: str) -> FakeGuest | None:
        self._check()
        if self._libvirtd.look_error is not None:
            raise self._libvirtd.look_error
        return self._libvirtd.guest if name in self._libvirtd.names else None

    async def load_capabilities(self) -> None:
        self._check()
        self._libvirtd.capability_loads += 1
        if self._libvirtd.capabilities_error is not None:
            raise self._libvirtd.capabilities_error

    async def define(self, xml: str) -> FakeGuest:
        self._check()
        if self._libvirtd.define_error is not None:
            raise self._libvirtd.define_error
        self._libvirtd.defined.append(xml)
        self._libvirtd.guest = FakeGuest(self._libvirtd, xml)
        return self._libvirtd.guest

    async def close(self) -> None:
        self.is_open = False

    def _check(self) -> None:
        if not self.is_open:
            raise Disconnected("the connection is closed")


class FakeLibvirtd:
    """A launcher's libvirtd. It outlives its connections, as real domains do."""

    def __init__(self, uid: str) -> None:
        self.names = {uid}
        self.guest: FakeGuest | None = None
        self.defined: list[str] = []
        self.asked: list[str] = []
        self.capability_loads = 0
        self.capabilities_error: HypervisorError | None = None
        self.define_error: HypervisorError | None = None
        self.start_error: HypervisorError | None = None
        self.while_starting: State | None = None
        """State of the domain between the start request and its error."""
        self.can_plug = True
        """Hot-plug takes effect. Otherwise it only succeeds."""
        self.is_off_again = False
        """A start succeeds, but the domain is off."""
        self.look_error: HypervisorError | None = None
        self.hangs_up = False
        """It closes every connection at once."""
        self.is_listening = True
        self.connections: list[FakeConnection] = []
        self.dials = 0

    async def connect(self, path: str) -> FakeConnection:
        self.dials += 1
        if not self.is_listening:
            raise Disconnected("nobody listens")
        self.connections.append(FakeConnection(self))
        if self.hangs_up:
            self.hang_up()
        return self.connections[-1]

    def tell(self, event: Event) -> None:
        for connection in self.connections:
            if connection.is_open:
                connection.events.put(event)

    def hang_up(self) -> None:
        """Close all connections, as a killed libvirtd does."""
        for connection in self.connections:
            if connection.is_open:
                connection.events.put(ConnectionClosed("eof"))
                connection.is_open = False


class LauncherFiles:
    """A launcher's emptyDir with the files that its supervisor writes."""

    def __init__(self, pods: Path, uid: str = POD_UID) -> None:
        self.run = pods / uid / "volumes" / "kubernetes.io~empty-dir" / layout.RUN_VOLUME
        self._server: socket.socket | None = None

    def make_directory(self) -> None:
        self.run.mkdir(parents=True)

    def report(self, path: str = "/img/volumes/root/disk/disk.img") -> None:
        disks = [{"volume": "root", "path": path, "format": "raw"}]
        (self.run / layout.REPORT).write_text(json.dumps({"version": 1, "container_disks": disks}))

    def listen(self) -> None:
        """Create libvirtd's socket. A report exists by then, or is made: virt-node waits for both."""
        if not (self.run / layout.REPORT).exists():
            self.report()
        (self.run / "libvirt").mkdir(exist_ok=True)
        self._server = socket.socket(socket.AF_UNIX)
        path = self.run.joinpath(*layout.LIBVIRT_SOCKET)
        path.unlink(missing_ok=True)
        self._server.bind(os.path.relpath(path))
        self._server.listen()
        os.chown(path, layout.UID, layout.UID)

    def remove(self) -> None:
        """Remove the Pod's volumes, as the kubelet does last."""
        shutil.rmtree(self.run.parents[2])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


class FakeProc:
    """A node's /proc, with the files that virt-handler reads: cgroup, comm, mount namespace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add(1, "0::/init.scope\n")
        self.see_mounts("1", "node")
        self.see_mounts("self", "handler")

    def see_mounts(self, process: str, namespace: str) -> None:
        """Set the mount namespace of a process."""
        directory = self.root / process / "ns"
        directory.mkdir(parents=True, exist_ok=True)
        (self.root / f"mnt-{namespace}").touch()
        (directory / "mnt").unlink(missing_ok=True)
        (directory / "mnt").symlink_to(self.root / f"mnt-{namespace}")

    def add(self, pid: int, cgroup: str, comm: str = "python3") -> None:
        (self.root / str(pid)).mkdir(parents=True)
        (self.root / str(pid) / "cgroup").write_text(cgroup)
        (self.root / str(pid) / "comm").write_text(f"{comm}\n")

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))


class FakeNetwork:
    """Records which networks were set up."""

    def __init__(self) -> None:
        self.wanted: list[Masquerade] = []
        self.error: Exception | None = None

    def set_up(self, namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
        if self.error is not None:
            raise self.error
        self.wanted.append(wanted)
        return ETH0


class FakeCache:
    """A cache that a test fills."""

    def __init__(self) -> None:
        self.synced = True
        self.resource_version = 0
        self._raw: dict[Key, bytes] = {}
        self._callbacks: list[Callable[[Key, bytes | None, bytes | None], None]] = []

    def get(self, key: Key) -> bytes | None:
        return self._raw.get(key)

    def keys(self) -> Collection[Key]:
        return list(self._raw)

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        """Drop all subscribers."""
        self._callbacks.clear()

    def put(self, body: Json) -> None:
        meta = body["metadata"]
        self._set(Key(meta.get("namespace", ""), meta["name"]), json.dumps(body).encode())

    def remove(self, key: Key) -> None:
        self._set(key, None)

    def _set(self, key: Key, after: bytes | None) -> None:
        before = self._raw.get(key)
        if after is None:
            self._raw.pop(key, None)
        else:
            self._raw[key] = after
        for callback in self._callbacks:
            callback(key, before, after)


class FakeApi:
    """An API server with VMIs. It updates the cache at once, unless it lags."""

    def __init__(self, cache: FakeCache) -> None:
        self.objects: dict[Key, Json] = {}
        self.patches: list[Mapping[str, Any]] = []
        self.gets: list[Key] = []
        self.is_lagging = False
        self.error: Exception | None = None
        self._cache = cache
        self._version = 100

    def store(self, body: Json) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self.objects[Key(body["metadata"]["namespace"], body["metadata"]["name"])] = body
        if not self.is_lagging and body["status"].get("nodeName"):
            self._cache.put(body)

    async def get(self, resource: Resource, key: Key) -> Json:
        self.gets.append(key)
        if self.error is not None:
            raise self.error
        if key not in self.objects:
            raise NotFound(f"no {key}")
        return copy.deepcopy(self.objects[key])

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: Literal["", "status"] = "",
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Json:
        if self.error is not None:
            raise self.error
        body = await self.get(resource, key)
        assert subresource == "status"
        meta = body["metadata"]
        if resource_version != meta["resourceVersion"] or uid != meta["uid"]:
            raise Conflict(f"{key} has changed")
        self.patches.append(patch)
        body["status"] = merged(body.get("status", {}), patch["status"])
        self.store(body)
        return body


async def until(is_so: Callable[[], bool], what: str = "it", *, clock: FakeClock | None = None) -> None:
    """Run the event loop until a condition is true. The timeout only fails the test.

    clock: a clock that moves on meanwhile.
    """
    try:
        async with asyncio.timeout(60):
            while not is_so():
                await asyncio.sleep(0.001)
                if clock is not None:
                    clock.seconds += 0.001
    except TimeoutError:
        raise AssertionError(f"{what} did not come true") from None
