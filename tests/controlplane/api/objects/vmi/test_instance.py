# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.decode import decode_vmi


@pytest.mark.parametrize(
    ("phase", "entered", "expected"),
    [
        ("", (), False),
        ("Scheduled", ("Pending", "Scheduling", "Scheduled"), False),
        ("Running", ("Scheduled", "Running"), True),
        ("Running", (), True),
        ("Unknown", ("Scheduled", "Running"), True),
        ("Failed", ("Scheduled", "Running", "Failed"), True),
        ("Failed", ("Scheduled", "Failed"), False),
    ],
    ids=["new", "not yet", "runs", "runs, by another writer", "not known now", "ended", "never started"],
)
def test_a_guest_has_run_once_it_was_observed_running(phase: str, entered: tuple[str, ...], expected: bool) -> None:
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"domain": {}},
        "status": {"phase": phase, "phaseTransitionTimestamps": [{"phase": item} for item in entered]},
    }
    assert decode_vmi(body).has_run is expected
