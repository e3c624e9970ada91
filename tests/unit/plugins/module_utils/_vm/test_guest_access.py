# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A refused console, screen or port: one prefix, and what to do."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import ApiError, NotFound
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.refusals import refusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import guest_access

OPEN = "open console of VirtualMachineInstance ns/web"


@pytest.mark.parametrize(
    ("status", "message", "shown"),
    [
        (404, 'virtualmachineinstance.kubevirt.io "web" not found', f'web" not found; {guest_access.START}'),
        (400, "console of virtualmachineinstance ns/web: it is off", f"cannot {OPEN}: it is off; {guest_access.START}"),
        (503, "console of virtualmachineinstance ns/web: in use", f"cannot {OPEN}: in use; look at the control plane"),
        (409, "it is paused", "it is paused; this one"),
        (500, "it broke", "it broke"),
    ],
)
def test_a_refusal_says_once_what_was_attempted_and_then_what_to_do(status: int, message: str, shown: str) -> None:
    error = guest_access.explained(refusal(OPEN, status, {"message": message}), {409: "this one"})
    assert shown in error.message
    assert error.status == status
    assert "virtualmachineinstance ns/web" not in error.message


def test_a_cause_in_the_spec_lasts_and_is_its_own_remedy() -> None:
    causes = [{"field": "spec.x", "message": "it has none: add one"}]
    error = guest_access.explained(refusal(OPEN, 400, {"message": "no", "details": {"causes": causes}}))
    assert guest_access.is_lasting(error)
    assert error.message.endswith("spec.x: it has none: add one")
    assert not guest_access.is_lasting(refusal(OPEN, 400, {"message": "not yet"}))


def test_a_cluster_without_kubevirt_is_no_machine_to_start() -> None:
    error: ApiError = NotFound("the API server does not know this kind", status=404)
    assert guest_access.explained(error).message == error.message
