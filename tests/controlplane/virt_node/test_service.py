# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests while the node changes or fails. Regular requests: test_node_client."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain import layout
from controlplane.links.node.messages import (
    Failed,
    FindTraces,
    GuestDevice,
    Masquerade,
    NetworkReady,
    Opened,
    OpenGuestSocket,
    OpenReport,
    OpenSocket,
    PodInterface,
    SetUpNetwork,
    TracesFound,
)
from controlplane.virt_node import service as service_module
from controlplane.virt_node.capabilities import Capabilities
from controlplane.virt_node.inotify import Inotify
from controlplane.virt_node.launcher_dir import PodsDirectory, Refused
from controlplane.virt_node.service import Service
from tests.controlplane.virt_handler.builders import ETH0, POD_UID
from tests.controlplane.virt_handler.fakes import FakeNetwork, FakeProc, LauncherFiles, until


class Node:
    """A node whose kubelet, processes and network the test controls."""

    def __init__(self, root: Path, inotify: Inotify) -> None:
        (root / "pods").mkdir()
        self.proc, self.network = FakeProc(root / "proc"), FakeNetwork()
        self.files = LauncherFiles(root / "pods")
        self.pods = PodsDirectory(str(root / "pods"))
        self.service = Service(
            self.pods, inotify, Capabilities(), self._set_up, proc=str(self.proc.root), handler_gid=os.getgid()
        )

    def _set_up(self, namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
        return self.network.set_up(namespace, wanted)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    inotify = Inotify()
    new = Node(tmp_path, inotify)
    yield new
    new.pods.close()
    inotify.close()


def after_the_first_of(looks: list[Callable[..., Any]], happens: Callable[[], None]) -> list[Callable[..., Any]]:
    """Wrap these looks: `happens` runs once, after the first look of any of them."""
    calls: list[object] = []

    def watched(look: Callable[..., Any]) -> Callable[..., Any]:
        def first(*arguments: Any, **named: Any) -> Any:
            try:
                return look(*arguments, **named)
            finally:
                calls.append(look)
                if len(calls) == 1:
                    happens()

        return first

    return [watched(wrapped) for wrapped in looks]


async def test_a_process_that_starts_during_the_search_is_not_missed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container restarts, then the directory is removed. No container starts without a directory."""
    node.files.make_directory()

    def goes_on() -> None:
        node.proc.add(100, f"0::/kubepods/pod{POD_UID}/abc\n")
        node.files.remove()

    looks = after_the_first_of([PodsDirectory.has_run, service_module.count_processes], goes_on)
    monkeypatch.setattr(PodsDirectory, "has_run", looks[0])
    monkeypatch.setattr(service_module, "count_processes", looks[1])

    answer = (await node.service.answer(FindTraces(1, POD_UID))).answer

    assert answer == TracesFound(1, has_directory=True, processes=1, emulators=0)


async def test_the_search_waits_for_qemu_as_long_as_the_request_says(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def count(_unused: str, __: str, *, wait_seconds: float) -> tuple[int, int]:
        waits.append(wait_seconds)
        return 0, 0

    monkeypatch.setattr(service_module, "count_processes", count)

    for request in (FindTraces(1, POD_UID), FindTraces(2, POD_UID, 0.5)):
        await node.service.answer(request)

    assert waits == [0.0, 0.5]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refused("another Pod's"), "refused"),
        (ProcessLookupError("process 7 behind libvirt's socket has exited"), "gone"),
        (TimeoutError(), "failed"),
        (OSError("no memory"), "failed"),
    ],
    ids=["refused", "gone", "time-out", "error of the kernel"],
)
async def test_a_failure_has_a_kind(error: Exception, kind: str, node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """`gone` passes soon; `refused` and `failed` block the start of the guest."""
    node.network.error = error
    request = SetUpNetwork(1, POD_UID, Masquerade("10.0.2.0/24"))
    answer = (await node.service.answer(request)).answer
    assert isinstance(answer, Failed)
    assert answer.kind == kind
    node.network.error = None
    assert (await node.service.answer(request)).answer == NetworkReady(1, ETH0)


async def test_a_reserved_network_is_refused_before_anything_changes(node: Node) -> None:
    """Admission refuses it too, but a captured virt-handler can request any network."""
    for cidr in ("127.0.0.0/8", "0.0.0.0/0", "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/8", "240.0.0.0/8"):
        answer = (await node.service.answer(SetUpNetwork(1, POD_UID, Masquerade(cidr)))).answer
        assert isinstance(answer, Failed)
        assert cidr in answer.text
    assert node.network.wanted == []


async def test_a_hanging_network_set_up_times_out(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(service_module, "_NETWORK_SECONDS", 0.01)
    monkeypatch.setattr(node.network, "set_up", lambda *_unused: may_end.wait(2))
    answer = (await node.service.answer(SetUpNetwork(1, POD_UID, Masquerade("10.0.2.0/24")))).answer
    may_end.set()
    assert answer == Failed(1, "failed", "it did not end in time")


async def test_a_socket_is_opened_once_the_report_exists(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """libvirtd starts before the disks are ready. Who gets its socket can read the report."""
    monkeypatch.setattr(service_module, "admit", lambda *_unused: None)
    opened: list[int] = []

    def open_socket(*_unused: object) -> int:
        opened.append(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))
        return opened[-1]

    monkeypatch.setattr(PodsDirectory, "open_socket", open_socket)
    node.files.make_directory()
    asking = asyncio.create_task(node.service.answer(OpenSocket(1, POD_UID)))
    await asyncio.wait({asking}, timeout=0.05)
    assert (asking.done(), opened) == (False, [])

    (node.files.run / "new").write_text("{}")
    (node.files.run / "new").rename(node.files.run / layout.REPORT)
    reply = await asking
    assert reply.descriptor == opened[0]
    os.close(opened[0])


@pytest.mark.parametrize(("device", "name"), [("serial", "serial0.sock"), ("vnc", "vnc.sock")])
async def test_a_device_of_a_guest_has_one_socket(
    node: Node, monkeypatch: pytest.MonkeyPatch, device: GuestDevice, name: str
) -> None:
    """A request names the device, never a path."""
    opened: list[tuple[str, Sequence[str]]] = []

    def open_socket(_unused: PodsDirectory, pod_uid: str, components: Sequence[str]) -> int:
        opened.append((pod_uid, components))
        return os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)

    monkeypatch.setattr(PodsDirectory, "open_socket", open_socket)
    monkeypatch.setattr(service_module, "admit", lambda *_unused: None)
    node.files.make_directory()
    reply = await node.service.answer(OpenGuestSocket(1, POD_UID, device))
    assert (reply.answer, opened) == (Opened(1), [(POD_UID, (name,))])
    assert reply.descriptor is not None
    os.close(reply.descriptor)


async def test_the_report_of_a_cancelled_request_is_closed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    may_open, opened = threading.Event(), []

    def open_file(*_unused: object) -> int:
        may_open.wait(5)
        opened.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        return int(opened[0])

    def is_let_go() -> bool:
        try:
            return bool(opened) and not os.fstat(opened[0])
        except OSError:
            return True

    monkeypatch.setattr(PodsDirectory, "open_file", open_file)
    asking = asyncio.create_task(node.service.answer(OpenReport(1, POD_UID)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    may_open.set()
    await until(is_let_go, "its end")


async def test_a_socket_is_closed_when_admitting_the_group_fails(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def open_socket(_pods: PodsDirectory, _pod_uid: str, _components: Sequence[str]) -> int:
        opened.append(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))
        return opened[-1]

    def admit(_socket: int, _gid: int) -> None:
        raise PermissionError("a file system for reading only")

    node.files.make_directory()
    node.files.report()
    monkeypatch.setattr(PodsDirectory, "open_socket", open_socket)
    monkeypatch.setattr(service_module, "admit", admit)

    answer = (await node.service.answer(OpenSocket(1, POD_UID))).answer

    assert isinstance(answer, Failed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])
