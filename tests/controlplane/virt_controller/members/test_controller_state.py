# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process remembers of the earlier batches of a set."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key
from controlplane.virt_controller.members.controller_state import ControllerState
from tests.controlplane.virt_controller.replicaset.stage import a_set

WEB = Key("default", "web")


def at(version: int, batches: int = 0, size: int = 0, uid: str = "u") -> VirtualMachineInstanceReplicaSet:
    owner = a_set(batches=batches, batchSize=size)
    return msgspec.structs.replace(
        owner, metadata=msgspec.structs.replace(owner.metadata, uid=uid, resource_version=str(version))
    )


def version(state: ControllerState, owner: VirtualMachineInstanceReplicaSet) -> int:
    """Return the version that a cache has to have read."""
    return state.observe(WEB, owner).version


def test_only_batches_of_another_leader_have_to_be_read() -> None:
    """A change by a user, e.g. scaling, must not wait for the next bookmark of an idle watch."""
    assert version(ControllerState(), at(10)) == 0
    state = ControllerState()
    assert version(state, at(10, batches=1)) == 10
    assert version(state, at(50, batches=1)) == 10, "changed by a user"
    assert version(state, at(60, batches=2, size=2)) == 60, "another leader began one"
    assert version(state, at(70, batches=2)) == 70, "and completed it"
    assert version(state, at(80, batches=2, uid="other")) == 80, "another set with the same name"


def test_an_own_write_needs_no_reading_and_proves_nothing_about_earlier_batches() -> None:
    """A process that completes another leader's batch has not read the batches before it."""
    for before, needed in ((at(10), 0), (at(10, batches=2, size=2), 10)):
        state = ControllerState()
        state.observe(WEB, before).note_written(at(20, batches=3, size=2))
        assert version(state, at(20, batches=3, size=2)) == needed
        state.of(WEB).note_written(at(30, batches=3))
        assert version(state, at(30, batches=3)) == needed
        assert state.of(WEB).current == "30", "the API server has returned this version"


def test_a_deleted_set_is_forgotten() -> None:
    state = ControllerState()
    state.observe(WEB, at(10)).current = "10"
    state.forget(WEB)
    assert state.observe(WEB, at(10)).current == ""


def test_an_attempt_leaves_a_name_unconfirmed_until_the_api_server_returns_what_exists() -> None:
    state = ControllerState().observe(WEB, at(10, batches=1, size=3))
    for name in ("x", "y", "z"):
        state.note_attempt(name)
    state.note_absent("x")
    state.note_confirmed("y", "uid")
    assert (state.absent, state.confirmed, state.unconfirmed) == ({"x"}, {"y": "uid"}, {"z"})
    state.note_attempt("x")
    state.note_attempt("y")
    assert (state.absent, state.confirmed, state.unconfirmed) == (set(), {}, {"x", "y", "z"})
