# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that the controller keeps of one migration."""

from __future__ import annotations

from controlplane.virt_controller.migration.controller_state import ControllerState
from tests.controlplane.virt_controller.migration.worlds import a_migration


def test_a_created_target_is_remembered_by_migration_uid() -> None:
    state, former, later = ControllerState(), a_migration(uid="former"), a_migration(uid="later")
    state.note_target_created(former)
    assert state.has_created_target(former)
    assert not state.has_created_target(later)
