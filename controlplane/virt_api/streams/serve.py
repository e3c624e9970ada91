# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves a stream: authorizes the user, opens the far end, accepts the client's WebSocket, copies until an end.

What can fail fails before the WebSocket is accepted, as an HTTP response with a Status. Afterwards the close frame says
why. Rights are reviewed again while a session is open: one that was taken away ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from aiohttp import web
from kubevirt_api.close_codes import FORBIDDEN
from kubevirt_api.names import CONSOLE_ORIGINS, STREAM_PROTOCOL

from controlplane.api.objects.console_origins import LONGEST_ORIGIN
from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, NotFound
from controlplane.http_server.quotas import BusyError, Quota
from controlplane.http_server.websocket import (
    NotAWebSocketError,
    accept_websocket,
    check_websocket,
    close_websocket,
    while_connected,
)
from controlplane.kube.access_review import User, review_access
from controlplane.kube.client import Client
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close, FarEnd, relay
from controlplane.links.streams import USER_LIMIT, OpenStream, close_reason
from controlplane.virt_api.http.response import Response, api_failure, conflict, failure, not_found
from controlplane.virt_api.http.routes import VM, SubresourceRoute
from controlplane.virt_api.streams.audit import audited
from controlplane.virt_api.streams.guest_ports import GuestAddress, open_port, parse_port
from controlplane.virt_api.streams.handler_streams import open_handler_stream
from controlplane.virt_api.streams.origin import is_allowed_origin
from controlplane.virt_api.streams.preconditions import StreamRefusedError, guest_with, guest_with_network
from controlplane.virt_api.subresources.dispatch import forbidden
from controlplane.virt_api.subresources.handler_client import HandlerClient

log = logging.getLogger(__name__)

SESSIONS, SESSIONS_OF_NAMESPACE, SESSIONS_OF_MACHINE = 256, 64, 16
REVIEW_SECONDS = 60.0
"""How often the user's right is reviewed while a session is open."""
PRESENCE_SECONDS = 10.0
"""How often a forwarded port's Pod is looked for."""
DEVICES: Mapping[str, GuestDevice] = {"console": "serial", "vnc": "vnc"}
"""By action; the other one is portforward."""
VMI_KIND, VM_KIND = VIRTUAL_MACHINE_INSTANCE.kind.lower(), VIRTUAL_MACHINE.kind.lower()


@dataclass(frozen=True, slots=True)
class Stream:
    """An open far end."""

    far: FarEnd
    find_end: Callable[[], Awaitable[Close | None]] | None = None
    """Finds an end that the far end does not notice. ApiError."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of this virt-api."""

    client: Client
    handlers: HandlerClient
    origins: Callable[[], Collection[str]] = frozenset
    """Origins of web pages that may open streams, beside the usual ones."""
    by_namespace: Quota = field(default_factory=lambda: Quota(SESSIONS, SESSIONS_OF_NAMESPACE))
    by_machine: Quota = field(default_factory=lambda: Quota(SESSIONS, SESSIONS_OF_MACHINE))

    async def serve(
        self, route: SubresourceRoute, user: User, request: web.BaseRequest
    ) -> Response | web.StreamResponse:
        """Serve a request until its stream ends. The response says why there was none. Never raises ApiError."""
        try:
            if not (await review_access(self.client, user, route.access)).allowed:
                return forbidden(route, user)
            check_websocket(request)  # before a session of another user is ended
            _check_origin(request, self.origins())
            with ExitStack() as reservations:
                key = Key(route.access.namespace, route.access.name)
                self._reserve(reservations, key)
                stream = await while_connected(request, self._open(route, key, user, request))
                try:
                    return await self._run(route, user, request, stream)
                finally:
                    await stream.far.close()
        except ConnectionError as error:
            return failure(400, str(error))  # nobody reads it
        except (StreamRefusedError, DecodeError, NotAWebSocketError, BusyError, ApiError) as error:
            return _refuse(route, error)

    def _reserve(self, reservations: ExitStack, key: Key) -> None:
        limits = (
            (self.by_namespace, key.namespace, f"namespace {key.namespace} has {SESSIONS_OF_NAMESPACE} open streams"),
            (self.by_machine, str(key), f"machine {key} has {SESSIONS_OF_MACHINE} open streams"),
        )
        for quota, holder, text in limits:
            reservations.enter_context(
                quota.reserve(holder, 1, f"{text}, or virt-api has {SESSIONS}; close one of them")
            )

    async def _open(self, route: SubresourceRoute, key: Key, user: User, request: web.BaseRequest) -> Stream:
        device = DEVICES.get(route.row.action)
        if device is None:
            return await self._open_port(route, key)
        opening = OpenStream(
            guest_with(device, await self._read_vmi(key)),
            device,
            user.name[:USER_LIMIT],
            keep_existing=device == "vnc" and request.query.get("preserveSession") == "true",
            with_backlog=device == "serial" and request.query.get("backlog") == "true",
        )
        return Stream(await open_handler_stream(self.handlers, opening))

    async def _open_port(self, route: SubresourceRoute, key: Key) -> Stream:
        port, protocol = parse_port(route.arguments)
        if route.row.resource == VM and not decode_vm(await self.client.get(VIRTUAL_MACHINE, key)).status.created:
            raise StreamRefusedError(409, "it has no instance: start it first")
        guest = guest_with_network(await self._read_vmi(key))
        address = GuestAddress(self.client, key.namespace, guest, self.handlers.is_allowed)
        return Stream(await open_port(await address.find(), port, protocol), address.find_end)

    async def _read_vmi(self, key: Key) -> VirtualMachineInstance:
        return decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))

    async def _run(
        self, route: SubresourceRoute, user: User, request: web.BaseRequest, stream: Stream
    ) -> web.StreamResponse:
        client = await accept_websocket(request, [STREAM_PROTOCOL])
        ended: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        watches = [asyncio.create_task(_end_when(ended, REVIEW_SECONDS, lambda: self._find_prohibition(route, user)))]
        if stream.find_end is not None:
            watches.append(asyncio.create_task(_end_when(ended, PRESENCE_SECONDS, stream.find_end)))
        try:
            with audited(route, user) as session:
                session.end = await relay(client, stream.far, ended, session.transferred)
        finally:
            for watch in watches:
                watch.cancel()
        await close_websocket(client, session.end.code, close_reason(session.end.reason))
        return client

    async def _find_prohibition(self, route: SubresourceRoute, user: User) -> Close | None:
        if (await review_access(self.client, user, route.access)).allowed:
            return None
        return Close(FORBIDDEN, "you may not use it any more: your right was taken away")


def _check_origin(request: web.BaseRequest, allowed: Collection[str]) -> None:
    """Refuse web pages from elsewhere. StreamRefusedError."""
    headers = request.headers
    hosts = [value for name in ("Host", "X-Forwarded-Host") if (value := headers.get(name))]
    if not is_allowed_origin(headers.get("Origin"), hosts, allowed, headers.get("Sec-Fetch-Site")):
        text = (
            f"a web page of {headers['Origin'][:LONGEST_ORIGIN]} may not open it: use `kubectl proxy`, or add this "
            f"origin to the annotation {CONSOLE_ORIGINS} of the KubeVirt object"
        )
        raise StreamRefusedError(403, text)


def _refuse(route: SubresourceRoute, error: Exception) -> Response:
    access, kind = route.access, VM_KIND if route.row.resource == VM else VMI_KIND
    named = f"{access.subresource} of {kind} {access.namespace}/{access.name}"
    match error:
        case StreamRefusedError(code=409):
            return conflict(kind, access.name, str(error))
        case StreamRefusedError(code=code, field=field):
            cause = {"reason": "FieldValueInvalid", "field": field, "message": str(error)}
            return failure(code, f"{named}: {error}", details={"causes": [cause]} if field else None)
        case NotFound():
            return not_found(kind, access.name)
        case ApiError():
            log.warning("cannot open a stream", extra={"stream": named, "because": error})
            return api_failure(error)
        case BusyError():
            return failure(429, str(error), headers={"Retry-After": "1"})
        case _:
            return failure(422 if isinstance(error, DecodeError) else 400, f"{named}: {error}")


async def _end_when(
    ended: asyncio.Future[Close], seconds: float, find_end: Callable[[], Awaitable[Close | None]]
) -> None:
    """Look for an end again and again. A silent API server ends nothing."""
    while not ended.done():
        await asyncio.sleep(seconds)
        with suppress(ApiError):
            end = await find_end()
            if end is not None and not ended.done():
                ended.set_result(end)
