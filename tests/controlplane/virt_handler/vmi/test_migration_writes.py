# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status writes of a migration's source: on the current VMI, and only while the migration may go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.api.objects.decode import encode
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import Conflict, Unavailable
from controlplane.virt_handler.vmi.migration_writes import TRIES, writes_of
from controlplane.virt_handler.vmi.ports import NoContact, Writes
from controlplane.virt_handler.vmi.world import BeginTransfer
from tests.controlplane.virt_handler.builders import POD_UID, a_launcher
from tests.controlplane.virt_handler.migrating import MIGRATION, begun, ready
from tests.support.clock import SimulatedClock

BEGIN = BeginTransfer(POD_UID, MIGRATION, "its target is ready")


class OneVmi:
    """An API server with one VMI."""

    def __init__(self, vmi: VirtualMachineInstance) -> None:
        self.body = encode(vmi)
        self.patches: list[dict[str, Any]] = []
        self.errors: list[Exception] = []

    async def get(self, *_unused: Any) -> dict[str, Any]:
        return self.body

    async def patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **options: Any) -> None:
        self.patches.append({**options, **patch})
        if self.errors:
            raise self.errors.pop()


def writes(api: OneVmi) -> Writes:
    session: Any = SimpleNamespace(launcher=a_launcher)
    return writes_of(ready(), BEGIN, session, api, SimulatedClock())  # type: ignore[arg-type]


async def test_the_start_is_written_on_the_version_that_was_read() -> None:
    api = OneVmi(ready())
    await writes(api).begin()
    (patch,) = api.patches
    assert patch["status"]["migrationState"]["mode"] == "PreCopy"
    assert (patch["resource_version"], patch["uid"]) == (
        api.body["metadata"].get("resourceVersion", ""),
        ready().metadata.uid,
    )


async def test_the_stop_is_written_only_after_the_start() -> None:
    api = OneVmi(begun())
    await writes(api).stop()
    assert [patch["status"]["migrationState"] for patch in api.patches] == [{"mode": "Paused"}]
    with pytest.raises(NoContact, match="it has begun already"):
        await writes(api).begin()


@pytest.mark.parametrize("conflicts", [1, TRIES])
async def test_a_conflict_is_retried_on_the_current_vmi(conflicts: int) -> None:
    api = OneVmi(ready())
    api.errors = [Conflict("it has changed")] * conflicts
    if conflicts < TRIES:
        await writes(api).begin()
    else:
        with pytest.raises(NoContact, match="the VMI keeps changing"):
            await writes(api).begin()
    assert len(api.patches) == conflicts + (conflicts < TRIES)


async def test_nothing_is_written_for_a_cancelled_migration_or_without_an_api_server() -> None:
    api = OneVmi(ready(abortRequested=True))
    with pytest.raises(NoContact, match="it is cancelled"):
        await writes(api).begin()
    assert api.patches == []
    api = OneVmi(ready())
    api.errors = [Unavailable("cut off")]
    with pytest.raises(NoContact, match="cut off"):
        await writes(api).begin()
