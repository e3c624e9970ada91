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


def test_a_set_without_batches_needs_no_reading() -> None:
    assert ControllerState().has_read_earlier_batches(WEB, at(10), 0)


def test_a_batch_of_another_leader_is_read_once_the_cache_has_passed_its_version() -> None:
    state = ControllerState()
    assert not state.has_read_earlier_batches(WEB, at(10, batches=1), 9)
    assert state.has_read_earlier_batches(WEB, at(10, batches=1), 10)


def test_a_change_by_a_user_needs_no_reading() -> None:
    """Scaling must not wait for the next bookmark of an idle watch."""
    state = ControllerState()
    assert state.has_read_earlier_batches(WEB, at(10, batches=1), 10)
    assert state.has_read_earlier_batches(WEB, at(50, batches=1), 10)


def test_an_own_write_needs_no_reading() -> None:
    state = ControllerState()
    assert state.has_read_earlier_batches(WEB, at(10), 5)
    state.note_written(WEB, at(20, batches=1, size=2))
    assert state.has_read_earlier_batches(WEB, at(20, batches=1, size=2), 5)
    state.note_written(WEB, at(30, batches=1))
    assert state.has_read_earlier_batches(WEB, at(30, batches=1), 5)


def test_an_own_write_proves_nothing_about_earlier_batches() -> None:
    """A process that completes another leader's batch has not read the batches before it."""
    state = ControllerState()
    assert not state.has_read_earlier_batches(WEB, at(10, batches=2, size=2), 5)
    state.note_written(WEB, at(20, batches=2))
    assert not state.has_read_earlier_batches(WEB, at(20, batches=2), 9)
    assert state.has_read_earlier_batches(WEB, at(20, batches=2), 10)


def test_a_batch_that_another_leader_begins_or_completes_has_to_be_read() -> None:
    state = ControllerState()
    assert state.has_read_earlier_batches(WEB, at(10), 5)
    assert not state.has_read_earlier_batches(WEB, at(20, batches=1, size=2), 5)
    assert state.has_read_earlier_batches(WEB, at(20, batches=1, size=2), 20)
    assert not state.has_read_earlier_batches(WEB, at(30, batches=1), 20)
    assert not state.has_read_earlier_batches(WEB, at(40, batches=2), 30)


def test_another_set_with_the_same_name_has_to_be_read() -> None:
    state = ControllerState()
    assert state.has_read_earlier_batches(WEB, at(10, batches=1), 10)
    assert not state.has_read_earlier_batches(WEB, at(20, batches=1, uid="other"), 10)


def test_a_set_is_current_at_the_version_that_the_api_server_returned() -> None:
    state = ControllerState()
    assert not state.is_current(WEB, at(10))
    state.note_current(WEB, at(10), "10")
    assert state.is_current(WEB, at(10))
    assert not state.is_current(WEB, at(11))
    state.note_written(WEB, at(12, batches=1))
    assert state.is_current(WEB, at(12, batches=1))


def test_a_set_is_not_current_during_a_write() -> None:
    """The response may be lost: the version that was returned before proves nothing any more."""
    state = ControllerState()
    state.note_current(WEB, at(10), "10")
    state.note_writing(WEB)
    assert not state.is_current(WEB, at(10))


def test_a_name_is_absent_until_this_process_tries_to_create_it() -> None:
    state, owner = ControllerState(), at(10, batches=1, size=2)
    assert state.absent(WEB, owner) == set()
    for name in ("x", "y"):
        state.note_absent(WEB, name)
    assert state.absent(WEB, owner) == {"x", "y"}
    state.note_attempt(WEB, "x")
    assert state.absent(WEB, owner) == {"y"}
    assert state.absent(WEB, at(20, batches=1)) == set(), "another leader was at work"


def test_a_member_is_confirmed_until_this_process_tries_to_create_its_name() -> None:
    state, owner = ControllerState(), at(10, batches=1, size=2)
    state.absent(WEB, owner)
    state.note_confirmed(WEB, "x", "1")
    assert state.is_confirmed(WEB, owner, "x", "1")
    assert not state.is_confirmed(WEB, owner, "x", "2"), "another UID"
    assert not state.is_confirmed(WEB, owner, "y", "1")
    state.note_attempt(WEB, "x")
    assert not state.is_confirmed(WEB, owner, "x", "1")


def test_a_deleted_set_is_forgotten() -> None:
    state = ControllerState()
    state.note_current(WEB, at(10), "10")
    state.forget(WEB)
    assert not state.is_current(WEB, at(10))


def test_an_attempt_is_unconfirmed_until_the_api_server_returns_what_exists() -> None:
    state, owner = ControllerState(), at(10, batches=1, size=2)
    assert state.unconfirmed(WEB, owner) == frozenset()
    for name in ("a", "b", "c"):
        state.note_attempt(WEB, name)
    state.note_absent(WEB, "a")
    state.note_confirmed(WEB, "b", "uid")
    assert state.unconfirmed(WEB, owner) == {"c"}
