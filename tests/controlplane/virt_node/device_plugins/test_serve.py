# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin on real sockets with a fake kubelet at the other end."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Server, Stream

from controlplane.virt_node.device_plugins import serve as serve_module
from controlplane.virt_node.device_plugins import wire
from controlplane.virt_node.device_plugins.device import COUNT, KVM
from controlplane.virt_node.device_plugins.plugin import BytesCodec, Plugin
from controlplane.virt_node.device_plugins.serve import KUBELET_SOCKET, serve
from controlplane.virt_node.inotify import Inotify
from tests.controlplane.virt_node.device_plugins.registration import read_register_request

LIST = wire.device_list([f"kvm{number}" for number in range(COUNT)], is_healthy=True)


class Kubelet:
    """Accepts registrations and opens a ListAndWatch stream for each, one client per resource name like a kubelet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asks = True
        self.registered: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()
        self.listed: asyncio.Queue[bytes | None] = asyncio.Queue()
        """The lists that it received, and None when it treats all devices as unhealthy."""
        self._clients: dict[str, Channel] = {}
        self.channels: list[Channel] = []
        self._watching: set[asyncio.Task[None]] = set()
        self._server: Server | None = None

    def __mapping__(self) -> dict[str, Handler]:
        return {"/v1beta1.Registration/Register": Handler(self._register, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def _register(self, stream: Stream[bytes, bytes]) -> None:
        request = await stream.recv_message()
        assert request is not None
        _unused, endpoint, resource = read_register_request(request)
        if self.asks:
            channel = self._clients[resource] = Channel(path=str(self.directory / endpoint), codec=BytesCodec())
            self.channels.append(channel)
            await channel.__connect__()
            self._watching.add(asyncio.create_task(self._watch(resource, channel)))
        await stream.send_message(wire.EMPTY)
        self.registered.put_nowait(read_register_request(request))

    async def _watch(self, resource: str, channel: Channel) -> None:
        method = UnaryStreamMethod[bytes, bytes](channel, "/v1beta1.DevicePlugin/ListAndWatch", bytes, bytes)
        with suppress(StreamTerminatedError, GRPCError):
            async with method.open() as stream:
                await stream.send_message(wire.EMPTY, end=True)
                while (devices := await stream.recv_message()) is not None:
                    self.listed.put_nowait(devices)
        self.drop(resource)

    def drop(self, resource: str) -> None:
        """Disconnect the current client of the resource, which may not be the one whose stream ended."""
        client = self._clients.pop(resource, None)
        if client is not None:
            client.close()
            self.listed.put_nowait(None)

    async def settled(self) -> None:
        """Wait until it has noticed the ends of its streams."""
        await asyncio.gather(*self._watching)
        self._watching.clear()

    async def start(self) -> None:
        """Start like a kubelet: clear the directory, then listen."""
        for path in self.directory.iterdir():
            path.unlink()
        self._server = Server([self], codec=BytesCodec())
        await self._server.start(path=str(self.directory / KUBELET_SOCKET))

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for resource in list(self._clients):
            self.drop(resource)
        for channel in self.channels:
            channel.close()
        await asyncio.gather(*self._watching)
        await self._server.wait_closed()

    @asynccontextmanager
    async def calling(self, endpoint: str) -> AsyncIterator[Channel]:
        channel = Channel(path=str(self.directory / endpoint), codec=BytesCodec())
        yield channel
        channel.close()


@pytest.fixture
async def kubelet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kubelet]:
    monkeypatch.chdir(tmp_path)
    started = Kubelet(Path("."))
    await started.start()
    yield started
    await started.stop()


class Reported(asyncio.Queue[bool]):
    """The reported registration states of the resource, in order."""

    async def __call__(self, resource: str, *, is_registered: bool) -> None:
        assert resource == KVM.resource
        self.put_nowait(is_registered)


@asynccontextmanager
async def serving(kubelet: Kubelet, inotify: type[Inotify] = Inotify) -> AsyncIterator[Reported]:
    reported, watches = Reported(), inotify()
    task = asyncio.create_task(
        serve(Plugin(KVM, "/private/kvm", is_healthy=True), kubelet.directory, watches, reported)
    )
    try:
        async with asyncio.timeout(10):
            yield reported
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        watches.close()


@pytest.fixture
async def served(kubelet: Kubelet) -> AsyncIterator[Reported]:
    async with serving(kubelet) as reported:
        yield reported


@pytest.fixture
def pauses(kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[float]:
    """The pauses that the plugin makes. They last only until the kubelet has noticed its ended streams."""
    seconds_paused: asyncio.Queue[float] = asyncio.Queue()

    async def pause(seconds: float, *_unused: object) -> None:
        seconds_paused.put_nowait(seconds)
        await kubelet.settled()

    monkeypatch.setattr(serve_module, "_pause", pause)
    return seconds_paused


async def test_a_plugin_registers_under_its_resource(kubelet: Kubelet, served: Reported) -> None:
    version, endpoint, resource = await kubelet.registered.get()
    assert (version, resource) == ("v1beta1", "devices.kubevirt.io/kvm")
    assert re.fullmatch("virtops-kvm-[0-9a-f]{8}[.]sock", endpoint)


async def test_devices_are_listed_and_the_stream_stays_open(kubelet: Kubelet, served: Reported) -> None:
    assert await kubelet.listed.get() == LIST
    assert await served.get()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await kubelet.listed.get()
    assert served.empty()


async def test_an_allocation_mounts_our_device_node_under_the_devices_name(kubelet: Kubelet, served: Reported) -> None:
    _unused, endpoint, _unused = await kubelet.registered.get()
    async with kubelet.calling(endpoint) as channel:
        allocate = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.DevicePlugin/Allocate", bytes, bytes)
        response = await allocate(b"\n\x06\n\x04kvm7")
    assert response == wire.allocate_response(1, "/dev/kvm", "/private/kvm", "rw")


async def test_the_plugin_registers_at_once_with_a_restarted_kubelet(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "_PAUSES_SECONDS", (60.0,))
    async with serving(kubelet) as reported:
        assert await reported.get()
        await kubelet.stop()
        assert not await reported.get()
        await kubelet.start()
        assert await reported.get()
    assert [kubelet.listed.get_nowait() for _unused in range(3)] == [LIST, None, LIST]


async def test_the_end_of_a_predecessor_leaves_the_successor_registered(kubelet: Kubelet) -> None:
    """When the predecessor's stream ends, the kubelet disconnects the successor, which has the name by then."""
    async with AsyncExitStack() as predecessor:
        old = await predecessor.enter_async_context(serving(kubelet))
        assert await old.get()
        async with serving(kubelet) as new:
            assert await new.get()
            assert old.empty()
            await predecessor.aclose()
            kubelet.channels[0].close()  # as when a process ends
            assert not await new.get()
            assert await new.get()
    assert [kubelet.listed.get_nowait() for _unused in range(4)] == [LIST, LIST, None, LIST]


async def test_the_plugin_is_not_registered_before_the_kubelet_lists_the_devices(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch, pauses: asyncio.Queue[float]
) -> None:
    monkeypatch.setattr(serve_module, "_LIST_SECONDS", 0.01)
    kubelet.asks = False
    async with serving(kubelet) as reported:
        _unused, first, _unused = await kubelet.registered.get()
        _unused, second, _unused = await kubelet.registered.get()
        assert first != second
        assert reported.empty()
        monkeypatch.setattr(serve_module, "_LIST_SECONDS", 5.0)
        kubelet.asks = True
        assert await reported.get()


async def test_registrations_with_a_kubelet_that_keeps_dropping_the_plugin_back_off(
    kubelet: Kubelet, pauses: asyncio.Queue[float]
) -> None:
    waited = []
    async with serving(kubelet) as reported:
        for _unused in range(6):
            assert await reported.get()
            kubelet.drop(KVM.resource)
            assert not await reported.get()
            waited.append(await pauses.get())
    assert waited == [0.2, 1.0, 2.0, 5.0, 10.0, 10.0]


async def test_a_stable_registration_resets_the_back_off(
    kubelet: Kubelet, pauses: asyncio.Queue[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "_SETTLED_SECONDS", 0.0)
    async with serving(kubelet) as reported:
        for _unused in range(3):
            assert await reported.get()
            kubelet.drop(KVM.resource)
            assert not await reported.get()
            assert await pauses.get() == 0.2


async def test_a_temporary_lack_of_inotify_watches_is_survived(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(serve_module, "_PAUSES_SECONDS", (0.0,))
    errors = [OSError(errno.ENOSPC, "No space left on device")] * 3

    class Exhausted(Inotify):
        async def wait_for(self, look: Callable[[], Any]) -> Any:
            if errors:
                raise errors.pop()
            return await super().wait_for(look)

    async with serving(kubelet, Exhausted) as reported:
        assert await reported.get()


async def test_a_pause_ends_early_only_for_another_kubelet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inotify, socket = Inotify(), tmp_path / KUBELET_SOCKET
    socket.touch()
    before = await serve_module._kubelet_socket(tmp_path, inotify)
    another = asyncio.create_task(serve_module._kubelet_restart(tmp_path, inotify, before))
    for change in (lambda: None, (tmp_path / "virtops-kvm.sock").touch, socket.unlink):
        change()
        for _unused in range(20):
            await asyncio.sleep(0)
        assert not another.done()
    socket.touch()
    async with asyncio.timeout(5):
        await another
    inotify.close()
