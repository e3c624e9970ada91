# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out virt-handler's requests, each about one launcher. virt-handler is not trusted.

A request names a Pod by its UID only, so it can cause nothing but what this node does for launchers anyway. virt-node
enters only directories that the kubelet created for a Pod and that contain a launcher's emptyDir.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from controlplane.domain import layout
from controlplane.links.node.messages import (
    Answer,
    Done,
    Failed,
    FindTraces,
    GiveCapabilities,
    ListenForMigration,
    Masquerade,
    NetworkReady,
    OpenConsoleLog,
    Opened,
    OpenGuestSocket,
    OpenMigrationSocket,
    OpenReport,
    OpenSocket,
    PodInterface,
    Request,
    SetUpNetwork,
    TracesFound,
    bounded_text,
)
from controlplane.virt_node.capabilities import Capabilities
from controlplane.virt_node.inotify import Inotify, NotYet
from controlplane.virt_node.launcher_dir import PodsDirectory, Refused, admit, closing_fd
from controlplane.virt_node.launcher_process import count_processes, pod_network_namespace
from controlplane.virt_node.workers import Workers

log = logging.getLogger(__name__)

SetUp = Callable[[AbstractContextManager[int], Masquerade], PodInterface]
"""Sets up a Pod's network. The context opens its namespace. The thread stays in it, so the thread must end afterwards.
"""
_NETWORK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, and a descriptor that the receiver closes."""

    answer: Answer
    descriptor: int | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """Carries out requests. It has no state of its own."""

    pods: PodsDirectory
    inotify: Inotify
    capabilities: Capabilities
    set_up: SetUp
    workers: Workers = field(default_factory=Workers)
    proc: str = "/proc"
    handler_gid: int = layout.HANDLER_UID

    async def answer(self, request: Request) -> Reply:
        """Carry out a request and return its response. Raises nothing but a cancellation."""
        try:
            return await self._do(request)
        except NotYet as not_yet:
            with not_yet:
                return _failed(request, "missing", "it does not exist (yet)")
        except Refused as error:
            return _failed(request, "refused", str(error))
        except ProcessLookupError as error:
            return _failed(request, "gone", str(error))
        except TimeoutError:
            return _failed(request, "failed", "it did not end in time")
        except Exception as error:  # pyroute2, libnftables and the kernel raise errors of many kinds
            log.warning("a request failed", extra={"request": type(request).__name__, "error": str(error)})
            return _failed(request, "failed", str(error) or type(error).__name__)

    async def _do(self, request: Request) -> Reply:
        match request:
            case OpenSocket() | OpenMigrationSocket() | OpenGuestSocket():
                return Reply(Opened(request.id), await self._open_socket(request))
            case ListenForMigration():
                return Reply(Opened(request.id), await self._listen(request))
            case OpenReport() | OpenConsoleLog():
                uid = request.pod_uid
                name = layout.REPORT if isinstance(request, OpenReport) else layout.SERIAL_LOG_NAME
                opened = await self.workers.run(uid, lambda: self.pods.open_file(uid, name), os.close)
                return Reply(Opened(request.id), opened)
            case GiveCapabilities():
                await self._give_capabilities(request)
                return Reply(Done(request.id))
            case SetUpNetwork():
                return Reply(NetworkReady(request.id, await self._set_up_network(request)))
            case FindTraces():
                return Reply(await self.workers.run(request.pod_uid, lambda: self._find_traces(request)))

    async def _listen(self, request: ListenForMigration) -> int:
        uid, components = request.pod_uid, layout.MIGRATION_SOCKETS[request.channel]
        return await self.workers.run(uid, lambda: self.pods.listen(uid, components).detach(), os.close)

    async def _open_socket(self, request: OpenSocket | OpenMigrationSocket | OpenGuestSocket) -> int:
        pod_uid = request.pod_uid
        components: tuple[str, ...] = layout.LIBVIRT_SOCKET
        if isinstance(request, OpenMigrationSocket):
            components = layout.MIGRATION_SOCKETS[request.channel]
        elif isinstance(request, OpenGuestSocket):
            components = layout.GUEST_SOCKETS[request.device]

        def look() -> int:
            if isinstance(request, OpenSocket):  # libvirtd may listen before the disks are ready
                os.close(self.pods.open_file(pod_uid, layout.REPORT))
            descriptor = self.pods.open_socket(pod_uid, components)
            try:
                admit(descriptor, self.handler_gid)
            except OSError:
                os.close(descriptor)
                raise
            return descriptor

        return await self.inotify.wait_for(look, lambda work: self.workers.run(pod_uid, work, os.close))

    async def _give_capabilities(self, request: GiveCapabilities) -> None:
        files = self.capabilities.files(with_kvm=request.with_kvm)
        if not files:
            return

        def look() -> None:
            self.pods.write_files(request.pod_uid, layout.CAPABILITY_CACHE, files)

        await self.inotify.wait_for(look, lambda work: self.workers.run(request.pod_uid, work))

    async def _set_up_network(self, request: SetUpNetwork) -> PodInterface:
        _unused = request.wanted.network  # ValueError, before anything is changed

        @contextmanager
        def namespace() -> Iterator[int]:
            with (
                closing_fd(self.pods.open_socket(request.pod_uid)) as socket_fd,
                pod_network_namespace(socket_fd, request.pod_uid, self.proc) as opened,
            ):
                yield opened

        async with asyncio.timeout(_NETWORK_SECONDS):
            return await self.workers.run(request.pod_uid, lambda: self.set_up(namespace(), request.wanted))

    def _find_traces(self, request: FindTraces) -> TracesFound:
        """Look for a Pod's directory, then its processes: the kubelet removes the directory last."""
        has_directory = self.pods.has_run(request.pod_uid)
        processes, emulators = count_processes(request.pod_uid, self.proc, wait_seconds=request.wait_seconds)
        return TracesFound(request.id, has_directory, processes, emulators)


def _failed(request: Request, kind: str, text: str) -> Reply:
    return Reply(Failed(request.id, kind, bounded_text(text)))  # type: ignore[arg-type]
