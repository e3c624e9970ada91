# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and end of each instance's last migration, with upstream's names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from controlplane.virt_controller.metrics.machines import Machines

BEGUN = {"migrationUid": "one", "startTimestamp": "2026-01-31T12:00:00Z"}
ENDED = {**BEGUN, "endTimestamp": "2026-01-31T12:00:02Z", "completed": True}
WHOLE = 'migration_name="{}",name="web",namespace="shop",node="node-2"'


def shown(state: dict[str, Any] | None, *migrations: bytes) -> list[str]:
    status = {"phase": "Running", "nodeName": "node-2"} | ({} if state is None else {"migrationState": state})
    vmi = json.dumps({"metadata": {"name": "web", "namespace": "shop"}, "status": status}).encode()
    registry = CollectorRegistry()
    registry.register(Machines(lambda: (), lambda: (vmi,), lambda: True, lambda: migrations))
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if line.startswith("kubevirt_vmi_migration")]


def a_migration(uid: str, name: str) -> bytes:
    return json.dumps({"metadata": {"name": name, "namespace": "shop", "uid": uid}}).encode()


def test_an_instance_without_a_migration_has_no_times() -> None:
    assert shown(None, a_migration("one", "job")) == []


def test_a_running_migration_has_a_start_and_a_name() -> None:
    assert shown(BEGUN, b"{", a_migration("other", "other"), a_migration("one", "job")) == [
        f"kubevirt_vmi_migration_start_time_seconds{{{WHOLE.format('job')}}} 1.7698608e+09"
    ]


@pytest.mark.parametrize(
    ("state", "word"),
    [(ENDED, "succeeded"), ({**ENDED, "failed": True}, "failed"), ({**ENDED, "completed": False}, "")],
)
def test_a_finished_migration_has_an_end_and_a_result(state: dict[str, Any], word: str) -> None:
    assert shown(state, a_migration("one", "job"))[1] == (
        f'kubevirt_vmi_migration_end_time_seconds{{{WHOLE.format("job")},status="{word}"}} 1.769860802e+09'
    )


def test_a_deleted_migration_has_no_name() -> None:
    assert all(WHOLE.format("<none>") in line for line in shown(ENDED))
    assert len(shown(ENDED)) == 2


def test_an_invalid_time_is_not_shown() -> None:
    assert shown({**ENDED, "startTimestamp": "soon", "endTimestamp": None}) == []
