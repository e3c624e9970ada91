# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The back-off for members that end before they run."""

from __future__ import annotations

from controlplane.api.objects.resources import Key
from controlplane.virt_controller.replicaset.failures import Failures
from tests.controlplane.virt_controller.replicaset.stage import a_member, a_set

KEY = Key("default", "web")


def test_only_a_member_that_comes_to_run_ends_the_back_off() -> None:
    failures, owner = Failures(), a_set(3)
    ran, failed, newer = a_member("a"), a_member("b", "Failed"), a_member("c")
    assert failures.note(KEY, owner, (ran,), 0.0) == (0, 0.0)
    assert failures.note(KEY, owner, (ran, failed), 1.0)[0] == 1
    held_back, seconds = failures.note(KEY, owner, (ran,), 2.0)
    assert held_back == 1
    assert seconds > 0
    assert failures.note(KEY, owner, (ran, newer), 3.0) == (0, 0.0)
