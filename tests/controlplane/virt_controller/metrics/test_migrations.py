# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from controlplane.virt_controller.metrics.migrations import Migrations


def a_migration(name: str, phase: str) -> bytes:
    status = {"phase": phase} if phase else {}
    body = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"vmiName": "web"}, "status": status}
    return json.dumps(body).encode()


def shown(*migrations: bytes, is_leader: bool = True) -> list[str]:
    registry = CollectorRegistry()
    registry.register(Migrations(lambda: migrations, lambda: is_leader))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_migrations_are_counted_by_phase_and_shown_by_their_end() -> None:
    phases = ("", "Pending", "Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "of tomorrow")
    lines = shown(*(a_migration(f"m{number}", phase) for number, phase in enumerate(phases)), b"{")
    assert lines == [
        "kubevirt_vmi_migrations_in_unset_phase 1.0",
        "kubevirt_vmi_migrations_in_pending_phase 2.0",
        "kubevirt_vmi_migrations_in_scheduling_phase 2.0",
        "kubevirt_vmi_migrations_in_running_phase 1.0",
        'kubevirt_vmi_migration_succeeded{namespace="shop",vmi="web",vmim="m6"} 1.0',
        'kubevirt_vmi_migration_failed{namespace="shop",vmi="web",vmim="m7"} 1.0',
    ]


def test_only_the_leader_shows_migrations() -> None:
    assert shown(a_migration("m", "Running"), is_leader=False) == []
