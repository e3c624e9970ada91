# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory hot-plug with real libvirt and QEMU, before and after a migration.

The test guest's kernel has no driver for the device: only the requested size is visible (docs/adr/0017).
"""

from __future__ import annotations

import pathlib
import re

import pytest

from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from tests.controlplane.virt_launcher.launched import UID, until
from tests.controlplane.virt_launcher.launcher_pod import Images
from tests.controlplane.virt_launcher.moved import moving

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

GIB = 1 << 30


def last_count(console: str) -> int:
    return max(map(int, re.findall(r"virtops-guest: counter ([0-9]+)", console)), default=0)


@pytest.mark.parametrize("is_still", [False, True], ids=["while it runs", "while it is still"])
async def test_a_migrated_guest_can_be_asked_for_other_memory(
    images: Images, tmp_path: pathlib.Path, is_still: bool
) -> None:
    async with moving(images, tmp_path, memory={"guest": "1Gi", "maxGuest": "4Gi"}) as moved:
        here = await moved.at_source.guest(UID)
        assert here is not None
        began = (await here.described(read_domain)).requested_bytes
        if is_still:
            await here.set_memory(GIB)
        there = await moved.send(is_still=is_still)
        assert await moved.states() == (State(Life.SHUT_OFF, "migrated"), State(Life.PAUSED, "user"))
        assert moved.target.console == ""
        came = (await there.described(read_domain)).requested_bytes
        await there.resume()
        await there.set_memory(2 * GIB)
        more = (await there.described(read_domain)).requested_bytes
        await there.set_memory(0)
        less = (await there.described(read_domain)).requested_bytes
        assert (began, came, more, less) == (0, GIB if is_still else 0, 2 * GIB, 0)
        counted = last_count(moved.source.console)
        await until(lambda: last_count(moved.target.console) > counted, "guest that goes on", moved.target)
