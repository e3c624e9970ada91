# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC service that the kubelet calls for one kind of device: list and allocate."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Stream

from controlplane.virt_node.device_plugins import wire
from controlplane.virt_node.device_plugins.device import COUNT, PERMISSIONS, Device

_SERVICE = "/v1beta1.DevicePlugin"


class BytesCodec(CodecBase):
    """Passes bytes through: wire.py encodes the messages."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:  # noqa: ARG002
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:  # noqa: ARG002
        return data


@dataclass(frozen=True, slots=True)
class Plugin:
    """COUNT devices that are all the same device node."""

    device: Device
    host_path: str
    """The device node on the node, which the runtime copies into containers."""
    is_healthy: bool = field(kw_only=True)


class Service:
    """Serves a plugin for one registration, which lasts while the kubelet has a ListAndWatch stream open."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._lists = 0
        self.opened = asyncio.Event()
        """Set once the kubelet has the list of devices."""
        self.ended = asyncio.Event()
        """Set when the last stream has ended."""

    def __mapping__(self) -> dict[str, Handler]:
        unary, stream = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            f"{_SERVICE}/GetDevicePluginOptions": Handler(self._options, unary, bytes, bytes),
            f"{_SERVICE}/ListAndWatch": Handler(self._list_and_watch, stream, bytes, bytes),
            f"{_SERVICE}/GetPreferredAllocation": Handler(self._options, unary, bytes, bytes),
            f"{_SERVICE}/Allocate": Handler(self._allocate, unary, bytes, bytes),
            f"{_SERVICE}/PreStartContainer": Handler(self._options, unary, bytes, bytes),
        }

    async def _options(self, stream: Stream[bytes, bytes]) -> None:
        """Reply with an empty message: no options are set, so the replies of the other two methods are not used."""
        await stream.recv_message()
        await stream.send_message(wire.EMPTY)

    async def _list_and_watch(self, stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        self._lists += 1
        try:
            identifiers = (f"{self._plugin.device.name}{number}" for number in range(COUNT))
            await stream.send_message(wire.device_list(identifiers, is_healthy=self._plugin.is_healthy))
            self.opened.set()
            # The devices' health does not change in this process; the stream stays open without further messages.
            await asyncio.Event().wait()
        finally:
            self._lists -= 1
            if not self._lists:
                self.ended.set()

    async def _allocate(self, stream: Stream[bytes, bytes]) -> None:
        request = await stream.recv_message()
        containers = wire.containers_of_allocate_request(request or b"")
        path, host_path = self._plugin.device.path, self._plugin.host_path
        await stream.send_message(wire.allocate_response(containers, path, host_path, PERMISSIONS))
