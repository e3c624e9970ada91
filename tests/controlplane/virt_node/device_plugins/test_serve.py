# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin on real sockets, with a kubelet's stand-in on the other end."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from controlplane.virt_node.device_plugins import wire
from controlplane.virt_node.device_plugins.device import COUNT, KVM
from controlplane.virt_node.device_plugins.plugin import BytesCodec, Plugin
from controlplane.virt_node.device_plugins.serve import serve
from controlplane.virt_node.inotify import Inotify


class Kubelet:
    """Takes registrations, and calls a plugin as a kubelet would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.registered: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()
        self._server: Server | None = None

    def __mapping__(self) -> dict[str, Handler]:
        return {"/v1beta1.Registration/Register": Handler(self._register, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def _register(self, stream: Stream[bytes, bytes]) -> None:
        request = await stream.recv_message()
        assert request is not None
        await stream.send_message(wire.EMPTY)
        self.registered.put_nowait(wire.read_register_request(request))

    async def start(self) -> None:
        """Do as a kubelet does when it starts: clear the directory, then listen."""
        for one in self.directory.iterdir():
            one.unlink()
        self._server = Server([self], codec=BytesCodec())
        await self._server.start(path=str(self.directory / "kubelet.sock"))

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @asynccontextmanager
    async def calling(self, endpoint: str) -> AsyncIterator[Channel]:
        channel = Channel(path=str(self.directory / endpoint), codec=BytesCodec())
        yield channel
        channel.close()


@pytest.fixture
async def kubelet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kubelet]:
    monkeypatch.chdir(tmp_path)
    made = Kubelet(Path("."))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def served(kubelet: Kubelet) -> AsyncIterator[list[str]]:
    told: list[str] = []

    async def tell(resource: str) -> None:
        told.append(resource)

    inotify = Inotify()
    plugin = Plugin(KVM, "/private/kvm", is_healthy=True)
    task = asyncio.create_task(serve(plugin, kubelet.directory, inotify, tell))
    yield told
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    inotify.close()


async def test_a_plugin_registers_under_its_resource(kubelet: Kubelet, served: list[str]) -> None:
    async with asyncio.timeout(5):
        assert await kubelet.registered.get() == ("v1beta1", "virtops-kvm.sock", "devices.kubevirt.io/kvm")


async def test_devices_are_listed_and_the_list_stays_open(kubelet: Kubelet, served: list[str]) -> None:
    async with asyncio.timeout(5):
        _unused, endpoint, _unused = await kubelet.registered.get()
        async with kubelet.calling(endpoint) as channel:
            method = UnaryStreamMethod[bytes, bytes](channel, "/v1beta1.DevicePlugin/ListAndWatch", bytes, bytes)
            async with method.open() as stream:
                await stream.send_message(wire.EMPTY, end=True)
                assert await stream.recv_message() == wire.device_list(
                    [f"kvm{number}" for number in range(COUNT)], is_healthy=True
                )
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await stream.recv_message()
                await stream.cancel()


async def test_an_allocation_hands_out_our_node_under_the_devices_name(kubelet: Kubelet, served: list[str]) -> None:
    async with asyncio.timeout(5):
        _unused, endpoint, _unused = await kubelet.registered.get()
        async with kubelet.calling(endpoint) as channel:
            allocate = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.DevicePlugin/Allocate", bytes, bytes)
            answer = await allocate(b"\n\x06\n\x04kvm7")
    assert answer == wire.allocate_response(1, "/dev/kvm", "/private/kvm", "rw")


async def test_a_restarted_kubelet_is_registered_with_again(kubelet: Kubelet, served: list[str]) -> None:
    async with asyncio.timeout(5):
        await kubelet.registered.get()
        await kubelet.stop()
        await kubelet.start()
        _unused, endpoint, _unused = await kubelet.registered.get()
        async with kubelet.calling(endpoint) as channel:
            options = UnaryUnaryMethod[bytes, bytes](
                channel, "/v1beta1.DevicePlugin/GetDevicePluginOptions", bytes, bytes
            )
            assert await options(wire.EMPTY) == wire.EMPTY


async def test_a_lack_that_passes_ends_nothing(kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch) -> None:
    """No inotify watch is left on the node, for a moment."""
    monkeypatch.setattr("controlplane.virt_node.device_plugins.serve._PAUSES_SECONDS", (0.0,))
    told = asyncio.Event()
    lacks = [OSError(errno.ENOSPC, "No space left on device")] * 3

    class Exhausted(Inotify):
        async def wait_for(self, look: Callable[[], Any]) -> Any:
            if lacks:
                raise lacks.pop()
            return await super().wait_for(look)

    async def tell(_resource: str) -> None:
        told.set()

    inotify = Exhausted()
    plugin = Plugin(KVM, "/private/kvm", is_healthy=True)
    task = asyncio.create_task(serve(plugin, kubelet.directory, inotify, tell))
    async with asyncio.timeout(5):
        await told.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    inotify.close()
