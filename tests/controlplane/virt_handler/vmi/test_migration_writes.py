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
from controlplane.virt_handler.vmi.migration_writes import writes_of
from controlplane.virt_handler.vmi.ports import NoContact
from controlplane.virt_handler.vmi.world import BeginTransfer
from tests.controlplane.virt_handler.builders import POD_UID, a_launcher
from tests.controlplane.virt_handler.moving import MIGRATION, ready
from tests.support.clock import SimulatedClock

BEGIN = BeginTransfer(POD_UID, MIGRATION, "its target is ready")


class OneVmi:
    """An API server with one VMI."""

    def __init__(self, vmi: VirtualMachineInstance) -> None:
        self.body = encode(vmi)
        self.patches: list[dict[str, Any]] = []

    async def get(self, *_unused: Any) -> dict[str, Any]:
        return self.body

    async def patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **options: Any) -> None:
        self.patches.append({**options, **patch})


async def begin(api: OneVmi) -> None:
    session: Any = SimpleNamespace(launcher=a_launcher)
    await writes_of(ready(), BEGIN, session, api, SimulatedClock()).begin()  # type: ignore[arg-type]


async def test_the_start_is_written_on_the_version_that_was_read() -> None:
    api = OneVmi(ready())
    await begin(api)
    (patch,) = api.patches
    assert patch["status"]["migrationState"]["mode"] == "PreCopy"
    assert (patch["resource_version"], patch["uid"]) == (
        api.body["metadata"].get("resourceVersion", ""),
        ready().metadata.uid,
    )


async def test_nothing_is_written_for_a_cancelled_migration() -> None:
    api = OneVmi(ready(abortRequested=True))
    with pytest.raises(NoContact, match="it is cancelled"):
        await begin(api)
    assert api.patches == []
