# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launcher Pods of its name a VMI waits for."""

from __future__ import annotations

import pytest

from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.vmi.predecessor import select_predecessors
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_running_pod, a_vmi

ORPHAN = a_running_pod(owner_name=None)
GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}


@pytest.mark.parametrize(
    ("pod", "grant", "is_predecessor"),
    [
        pytest.param(ORPHAN, {}, True, id="of a former instance"),
        pytest.param(ORPHAN, GRANTED, False, id="its own, which lost its owner"),
        pytest.param(a_running_pod(), {}, False, id="its own"),
        pytest.param(a_pod("Failed", owner_name=None), {}, False, id="over"),
    ],
)
def test_a_pod_that_may_have_a_former_guest_is_a_predecessor(
    pod: Pod, grant: dict[str, object], is_predecessor: bool
) -> None:
    assert select_predecessors((pod,), a_vmi("Running", **grant)) == ((pod,) if is_predecessor else ())
