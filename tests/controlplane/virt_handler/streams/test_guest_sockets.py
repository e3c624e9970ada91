# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which socket a stream gets, and why it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubevirt_api.close_codes import ENDED, MOVED, REPLACED

from controlplane.links.handler import Guest
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError
from controlplane.virt_handler.streams import guest_sockets
from controlplane.virt_handler.streams.guest_sockets import GuestSockets, StreamRefused
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.virt_handler.builders import (
    NODE,
    OTHER,
    POD_UID,
    VMI_UID,
    a_launcher,
    a_pod,
    observed,
    seen,
    vmi_object,
)
from tests.controlplane.virt_handler.fakes import FakeCache

GUEST = Guest(NODE, VMI_UID, POD_UID)


class Stage:
    """A node with one launcher, and a virt-node that has its sockets."""

    def __init__(self) -> None:
        self.known = a_launcher(seen())
        self.asked: list[tuple[str, GuestDevice]] = []
        self.error: Exception | None = None
        self.vmis = FakeCache()
        self.sockets = GuestSockets(NODE, self, self, self.vmis)

    def session(self, pod_uid: str) -> Stage | None:
        return self if pod_uid == POD_UID else None

    def launcher(self) -> Launcher:
        return self.known

    async def open_guest_socket(self, pod_uid: str, device: GuestDevice) -> LauncherSocket:
        self.asked.append((pod_uid, device))
        if self.error is not None:
            raise self.error
        return LauncherSocket(7)

    async def read_console_backlog(self, pod_uid: str) -> bytes:
        self.asked.append((pod_uid, "serial"))
        if self.error is not None:
            raise self.error
        return b"login: "

    async def open(self, guest: Guest = GUEST, device: GuestDevice = "serial") -> LauncherSocket:
        return await self.sockets.open(OpenStream(guest, device, "jane"))

    def put(self, uid: str = VMI_UID, **migration: Any) -> None:
        body = vmi_object("Running")
        body["metadata"]["uid"] = uid
        if migration:
            body["status"]["migrationState"] = {"sourcePodUID": POD_UID, "targetNode": OTHER, **migration}
        self.vmis.put(body)


@pytest.mark.parametrize("device", ["serial", "vnc"])
async def test_a_guest_of_this_node_has_its_devices_opened(device: GuestDevice) -> None:
    stage = Stage()
    assert await stage.open(device=device) == LauncherSocket(7)
    assert stage.asked == [(POD_UID, device)]


@pytest.mark.parametrize(
    ("guest", "launcher"),
    [
        (Guest(OTHER, VMI_UID, POD_UID), a_launcher(seen())),
        (Guest(NODE, "another", POD_UID), a_launcher(seen())),
        (Guest(NODE, VMI_UID, "another"), a_launcher(seen())),
        (GUEST, a_launcher(seen(), a_pod(owner_uid="another"))),
        (GUEST, a_launcher(seen(observed=observed(uid="another")))),
    ],
    ids=["another node", "another VMI", "another Pod", "its Pod is another's", "its domain is another's"],
)
async def test_no_socket_of_another_guest_is_opened(guest: Guest, launcher: Launcher) -> None:
    stage = Stage()
    stage.known = launcher
    with pytest.raises(StreamRefused) as refused:
        await stage.open(guest)
    assert (refused.value.answer.kind, stage.asked) == ("absent", [])


async def test_a_failure_of_virt_node_is_reported() -> None:
    stage = Stage()
    stage.error = NodeError("serial0.sock is a link")
    with pytest.raises(StreamRefused, match=r"cannot open the serial console: serial0.sock is a link") as refused:
        await stage.open()
    assert refused.value.answer.kind == "lost"


async def test_a_socket_that_does_not_appear_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    monkeypatch.setattr(guest_sockets, "SOCKET_SECONDS", 0.01)

    async def wait(*_unused: object) -> LauncherSocket:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(stage, "open_guest_socket", wait)
    with pytest.raises(StreamRefused, match="graphics device was not there within") as refused:
        await stage.open(device="vnc")
    assert refused.value.answer.kind == "refused"


async def test_the_backlog_is_that_of_the_named_guest() -> None:
    stage = Stage()
    assert await stage.sockets.read_backlog(GUEST) == b"login: "
    assert await stage.sockets.read_backlog(Guest(NODE, "another", POD_UID)) == b""
    assert stage.asked == [(POD_UID, "serial")]


async def test_a_backlog_that_cannot_be_read_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.error = NodeError("serial0.log is a link")
    assert await stage.sockets.read_backlog(GUEST) == b""
    assert "a console begins without its backlog" in caplog.messages


async def test_the_end_of_a_stream_names_where_the_guest_is() -> None:
    stage = Stage()
    assert (await stage.sockets.explain_end(GUEST)) == Close(ENDED, "the guest has stopped, or runs on another node")
    stage.put()
    assert (await stage.sockets.explain_end(GUEST)) == Close(ENDED, "the guest has stopped")
    stage.put(startTimestamp="2026-01-01T00:00:00Z")
    assert (await stage.sockets.explain_end(GUEST)) == Close(MOVED, f"the guest moved to node {OTHER}: connect again")
    for other in ({"failed": True}, {"sourcePodUID": "another"}):
        stage.put(**other)
        assert (await stage.sockets.explain_end(GUEST)).code == ENDED
    stage.put("another")
    assert (await stage.sockets.explain_end(GUEST)).code == REPLACED
