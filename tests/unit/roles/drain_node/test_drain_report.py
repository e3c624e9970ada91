# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migrations a failed drain cancels, and its last message."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, role_variables

CORDONED = {"changed": True, "failed": False}
STAYS = {"changed": False, "failed": False}
AGAIN = "It takes Pods again, as before."
UNCANCELLED = (
    "Migrations that had not started could not be cancelled; check them (kubevirt_migration_info with unfinished=true)"
)
NOT_CORDONED = "could not be cordoned, and nothing was done"
NOTHING: dict[str, Any] = {"changed": False, "results": []}


def a_migration(name: str, **status: str) -> dict[str, Any]:
    result = {"metadata": {"name": f"{name}-migration-1", "namespace": "default"}, "spec": {"vmiName": name}}
    return {**result, "status": status} if status else result


def tried(name: str, *, changed: bool = True) -> dict[str, Any]:
    """Return the module's result for a machine whose migration is not over in time."""
    return {"name": name, "changed": changed, "failed": True, "migration": f"{name}-migration-1"}


UNFINISHED = [
    a_migration("new"),
    a_migration("waits", phase="Scheduling"),
    a_migration("prepared", phase="TargetReady"),
    a_migration("moves", phase="Running"),
    a_migration("joined", phase="Pending"),
    a_migration("foreign", phase="Pending"),
]
MOVED = {
    "failed": True,
    "results": [
        *(tried(name) for name in ("new", "waits", "prepared", "moves", "over")),
        tried("joined", changed=False),
        {"name": "late", "changed": False, "failed": True, "msg": "its turn did not come"},
        {"name": "gone", "changed": True},
    ],
}
FOUND = {
    "some": {"__drain_node_cordoned": CORDONED, "__drain_node_moved": MOVED},
    "none_moved": {"__drain_node_cordoned": CORDONED, "__drain_node_moved": {"failed": True, "msg": "403"}},
    "stays": {"__drain_node_cordoned": STAYS},
    "may_not": {"__drain_node_cordoned": {"failed": True, "changed": False, "reason": "Forbidden"}},
    "no_answer": {"__drain_node_cordoned": {"failed": True, "changed": False}},
    "cancelled": {
        "__drain_node_cordoned": CORDONED,
        "__drain_node_cancelled": {
            "results": [
                {"changed": True, "item": a_migration("waits")},
                {"changed": True, "item": a_migration("new")},
                {"changed": False, "item": a_migration("over")},
            ]
        },
    },
    "kept": {
        "__drain_node_cordoned": CORDONED,
        "__drain_node_cancelled": {"results": [{"changed": False, "msg": "no right", "item": a_migration("waits")}]},
    },
    "unread": {"__drain_node_cordoned": CORDONED, "__drain_node_unfinished": {"changed": False, "msg": "no answer"}},
}
DEFAULT = {
    "drain_node_name": "node-1",
    "__drain_node_unfinished": {"changed": False, "resources": UNFINISHED},
    "__drain_node_cancelled": NOTHING,
    "__drain_node_moved": {"results": []},
}


def value(drain: str, template: str) -> Any:
    return Host(ROLES / "drain_node", role_variables("drain_node") | DEFAULT | FOUND[drain]).value(template)


@pytest.mark.parametrize(
    ("drain", "machines"),
    [
        pytest.param("some", ["new", "waits", "prepared"], id="its own that do not move yet"),
        pytest.param("none_moved", [], id="it has made none"),
    ],
)
def test_migrations_of_this_run_without_progress_are_cancelled(drain: str, machines: list[str]) -> None:
    """Migrations of others continue, and so do those in progress."""
    assert value(drain, "{{ __drain_node_waiting | map(attribute='spec.vmiName') }}") == machines


@pytest.mark.parametrize(
    ("drain", "how", "then"),
    [
        ("some", "is not empty", AGAIN),
        ("stays", "is not empty", "It stays cordoned, as before."),
        ("may_not", NOT_CORDONED, "The role needs the right to patch nodes."),
        ("no_answer", NOT_CORDONED, ""),
        (
            "cancelled",
            "is not empty",
            f"{AGAIN} Cancelled, because it had not started to move: default/waits, default/new.",
        ),
        ("kept", "is not empty", f"{AGAIN} {UNCANCELLED}: no right"),
        ("unread", "is not empty", f"{AGAIN} {UNCANCELLED}: no answer"),
    ],
)
def test_machines_left_behind_are_reported(drain: str, how: str, then: str) -> None:
    assert value(drain, "{{ [__drain_node_is_how, __drain_node_then | trim] }}") == [how, then]


def unmovable(name: str, strategy: str) -> dict[str, str]:
    return {"namespace": "default", "name": name, "reason": f"why {name}", "eviction_strategy": strategy}


def test_machines_that_are_shut_down_are_named_and_no_others() -> None:
    machines = [
        unmovable(name, strategy)
        for name, strategy in (
            ("none", "None"),
            ("kept", "LiveMigrate"),
            ("if-possible", "LiveMigrateIfPossible"),
            ("theirs", "External"),
            ("unset", ""),
        )
    ]
    variables = role_variables("drain_node") | DEFAULT | {"__drain_node_moved": {"unmovable": machines}}
    text = Host(ROLES / "drain_node", variables).value("{{ __drain_node_evictable_text | trim }}")
    named = "default/none: why none; default/if-possible: why if-possible; default/unset: why unset."
    assert named in text
    assert "RerunOnFailure" in text
    assert not any(name in text for name in ("kept", "theirs"))
