# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a domain, over a connection that is there: no socket, no directory."""

from __future__ import annotations

import socket

import pytest

from controlplane.virt_handler.launchers.session import Session, Tools
from controlplane.virt_handler.node_client import NodeClient
from tests.controlplane.virt_handler.builders import RUNNING, VMI_UID, a_pod, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeLibvirtd


@pytest.mark.parametrize("xml", ["<domain>", "<domain>" + "<a>" * 1000, domain_text()], ids=["cut", "deep", "ours"])
async def test_a_description_is_read_once_in_a_connection_whatever_it_is(xml: str) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)

    async def nowhere() -> socket.socket:
        raise ConnectionRefusedError

    session = Session(a_pod(), VMI_UID, Tools(NodeClient(nowhere), FakeClock(), libvirtd.connect), lambda: None)
    connection = session._connection = FakeConnection(libvirtd)
    guest = await connection.define(xml)
    guest.life = RUNNING
    for _unused in range(3):
        await session.refresh()
    assert guest.descriptions == 1
    assert (session.launcher().sighting.state == RUNNING) is (xml == domain_text())
