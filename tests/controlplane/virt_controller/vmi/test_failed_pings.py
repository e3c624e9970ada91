# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Events of a Pod say that a guest's agent did not respond to a ping."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.event import Event, InvolvedObject
from controlplane.virt_controller.vmi.failed_pings import is_failed_ping
from tests.controlplane.virt_controller.builders import POD_UID, a_vmi

PING: dict[str, Any] = {"guestAgentPing": {}}
PORT: dict[str, Any] = {"tcpSocket": {"port": 22}}
LIVENESS, READINESS = "Liveness probe failed: no response", "Readiness probe errored: no response"


@pytest.mark.parametrize(
    ("changed", "message", "expected"),
    [
        ({}, LIVENESS, True),
        ({}, READINESS, False),
        ({"spec": {"readinessProbe": PING}}, READINESS, True),
        ({"spec": {"readinessProbe": PING}}, LIVENESS, False),
        ({}, "Startup probe failed: no response", False),
        ({"phase": "Scheduled"}, LIVENESS, False),
        ({"pod": "another"}, LIVENESS, False),
        ({"reason": "FailedMount"}, LIVENESS, False),
    ],
)
def test_it_is_one_if_the_probe_that_failed_is_a_ping(changed: dict[str, Any], message: str, expected: bool) -> None:
    spec = changed.get("spec", {"livenessProbe": PING, "readinessProbe": PORT})
    vmi = a_vmi(changed.get("phase", "Running"), activePods={POD_UID: "node-1"}, nodeName="node-1", spec=spec)
    about = InvolvedObject(kind="Pod", name="pod", uid=changed.get("pod", POD_UID))
    event = Event(involved_object=about, reason=changed.get("reason", "Unhealthy"), message=message)
    assert is_failed_ping(event, vmi) is expected
