# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a domain, over a connection that is there: no socket, no directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.virt_handler.inotify import Inotify
from controlplane.virt_handler.launcher_dir import PodsDirectory
from controlplane.virt_handler.launchers.session import Session, Tools
from tests.controlplane.virt_handler.builders import RUNNING, VMI_UID, a_pod, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeLibvirtd, FakeNetwork


@pytest.mark.parametrize("xml", ["<domain>", "<domain>" + "<a>" * 1000, domain_text()], ids=["cut", "deep", "ours"])
async def test_a_description_is_read_once_in_a_connection_whatever_it_is(tmp_path: Path, xml: str) -> None:
    libvirtd, directory, inotify = FakeLibvirtd(VMI_UID), PodsDirectory(str(tmp_path)), Inotify()
    tools = Tools(directory, inotify, FakeClock(), libvirtd.connect, FakeNetwork().set_up, lambda _unused: {})
    session = Session(a_pod(), VMI_UID, tools, lambda: None)
    connection = session._connection = FakeConnection(libvirtd)
    guest = await connection.define(xml)
    guest.life = RUNNING
    for _unused in range(3):
        await session.refresh()
    assert guest.descriptions == 1
    assert (session.launcher().sighting.state == RUNNING) is (xml == domain_text())
    directory.close()
    inotify.close()
