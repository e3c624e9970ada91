# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory hot-plug with real libvirt and QEMU, before and after a migration.

The test guest's kernel has no driver for the device: only the requested size is visible (docs/adr/0017).
"""

from __future__ import annotations

import pathlib

import pytest

from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from tests.controlplane.virt_launcher.launched import UID, last_count, until
from tests.controlplane.virt_launcher.launcher_pod import Images
from tests.controlplane.virt_launcher.migration_pods import migration_pods

pytestmark = [
    pytest.mark.guest,
    pytest.mark.nightly,  # by day: e2e/test_live_changes
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("libvirt_loop"),
]

GIB = 1 << 30


@pytest.mark.parametrize("is_still", [False, True], ids=["while it runs", "while it is still"])
async def test_a_migrated_guest_can_be_asked_for_other_memory(
    images: Images, tmp_path: pathlib.Path, is_still: bool
) -> None:
    async with migration_pods(images, tmp_path, memory={"guest": "1Gi", "maxGuest": "4Gi"}) as migration:
        at_source = await migration.at_source.guest(UID)
        assert at_source is not None
        began = (await at_source.described(read_domain)).requested_bytes
        if is_still:
            await at_source.set_memory(GIB)
        at_target = await migration.send(is_still=is_still)
        assert await migration.states() == (State(Life.SHUT_OFF, "migrated"), State(Life.PAUSED, "user"))
        assert migration.target.console == ""
        came = (await at_target.described(read_domain)).requested_bytes
        await at_target.resume()
        await at_target.set_memory(2 * GIB)
        more = (await at_target.described(read_domain)).requested_bytes
        await at_target.set_memory(0)
        less = (await at_target.described(read_domain)).requested_bytes
        assert (began, came, more, less) == (0, GIB if is_still else 0, 2 * GIB, 0)
        counted = last_count(migration.source.console)
        await until(lambda: last_count(migration.target.console) > counted, "guest that goes on", migration.target)
