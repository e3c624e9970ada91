# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance of a VM as its status describes it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.unread_instance import described

READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("printable", "phase", "is_leaving"),
    [
        ("Running", "Running", False),
        ("Paused", "Running", False),
        ("Migrating", "Running", False),
        ("Starting", "Scheduling", False),
        ("ErrorUnschedulable", "Scheduling", False),
        ("ErrorPvcNotFound", "Scheduling", False),
        ("ImagePullBackOff", "Scheduling", False),
        ("CrashLoopBackOff", "Failed", False),
        ("Stopped", "Succeeded", False),
        ("Stopping", "Running", True),
        ("Terminating", "Running", True),
        (None, "Scheduling", False),
    ],
)
def test_an_instance_is_described_by_the_printable_status(printable: str | None, phase: str, is_leaving: bool) -> None:
    status = {"created": True, "printableStatus": printable, "conditions": READY}
    vmi: Any = described({"metadata": {"name": "web", "namespace": "default", "uid": "of the VM"}, "status": status})

    assert (vmi["status"]["phase"], "deletionTimestamp" in vmi["metadata"]) == (phase, is_leaving)
    assert vmi["status"]["conditions"] == READY
    assert "uid" not in vmi["metadata"]


@pytest.mark.parametrize("status", [None, {}, {"created": False, "printableStatus": "Stopped"}])
def test_a_vm_that_created_none_has_none(status: dict[str, Any] | None) -> None:
    assert described({"metadata": {"name": "web"}, "status": status}) is None


def test_an_instance_that_is_to_be_stopped_is_leaving() -> None:
    """Between the request of a restart and the deletion of the old instance the status still says Running."""
    status = {"created": True, "printableStatus": "Running", "stateChangeRequests": [{"action": "Stop"}]}
    assert (described({"metadata": {}, "status": status}) or {})["metadata"].get("deletionTimestamp")
