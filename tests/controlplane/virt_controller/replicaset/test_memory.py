# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a process knows of what was made for a set before it came."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key
from controlplane.virt_controller.replicaset.memory import Memories
from tests.controlplane.virt_controller.replicaset.stage import a_set

WEB = Key("default", "web")


def at(version: int, batches: int = 0, size: int = 0, uid: str = "u") -> VirtualMachineInstanceReplicaSet:
    found = a_set(batches=batches, batchSize=size)
    return msgspec.structs.replace(
        found, metadata=msgspec.structs.replace(found.metadata, uid=uid, resource_version=str(version))
    )


def test_of_a_set_for_which_nothing_was_begun_all_is_known() -> None:
    assert Memories().is_past_known(WEB, at(10), resource_version=0)


def test_what_another_leader_began_is_known_when_the_cache_is_past_it() -> None:
    memories = Memories()
    assert not memories.is_past_known(WEB, at(10, batches=1), resource_version=9)
    assert memories.is_past_known(WEB, at(10, batches=1), resource_version=10)


def test_a_change_by_a_user_makes_nothing_unknown() -> None:
    """Scaling is not to wait for the next bookmark of an idle watch."""
    memories = Memories()
    assert memories.is_past_known(WEB, at(10, batches=1), resource_version=10)
    assert memories.is_past_known(WEB, at(50, batches=1), resource_version=10)


def test_what_this_process_has_written_makes_nothing_unknown() -> None:
    memories = Memories()
    assert memories.is_past_known(WEB, at(10), resource_version=5)
    memories.note_written(WEB, at(20, batches=1, size=2))
    assert memories.is_past_known(WEB, at(20, batches=1, size=2), resource_version=5)
    memories.note_written(WEB, at(30, batches=1))
    assert memories.is_past_known(WEB, at(30, batches=1), resource_version=5)


def test_nor_does_it_make_anything_known() -> None:
    """Who completes another leader's batch has not seen the ones before it."""
    memories = Memories()
    assert not memories.is_past_known(WEB, at(10, batches=2, size=2), resource_version=5)
    memories.note_written(WEB, at(20, batches=2))
    assert not memories.is_past_known(WEB, at(20, batches=2), resource_version=9)
    assert memories.is_past_known(WEB, at(20, batches=2), resource_version=10)


def test_a_batch_that_another_leader_began_or_completed_is_news() -> None:
    memories = Memories()
    assert memories.is_past_known(WEB, at(10), resource_version=5)
    assert not memories.is_past_known(WEB, at(20, batches=1, size=2), resource_version=5)
    assert memories.is_past_known(WEB, at(20, batches=1, size=2), resource_version=20)
    assert not memories.is_past_known(WEB, at(30, batches=1), resource_version=20)
    assert not memories.is_past_known(WEB, at(40, batches=2), resource_version=30)


def test_another_set_of_the_name_is_news() -> None:
    memories = Memories()
    assert memories.is_past_known(WEB, at(10, batches=1), resource_version=10)
    assert not memories.is_past_known(WEB, at(20, batches=1, uid="other"), resource_version=10)


def test_a_set_is_current_as_the_api_server_has_told_it_or_stored_it() -> None:
    memories = Memories()
    assert not memories.is_current(WEB, at(10))
    memories.note_told(WEB, at(10), "10")
    assert memories.is_current(WEB, at(10))
    assert not memories.is_current(WEB, at(11))
    memories.note_written(WEB, at(12, batches=1))
    assert memories.is_current(WEB, at(12, batches=1))


def test_a_set_that_is_being_written_is_not_known_to_be_current() -> None:
    """An answer may be lost: what was told before says nothing of what the set is then."""
    memories = Memories()
    memories.note_told(WEB, at(10), "10")
    memories.note_writing(WEB)
    assert not memories.is_current(WEB, at(10))


def test_a_name_is_free_until_this_process_tries_to_take_it() -> None:
    memories, begun = Memories(), at(10, batches=1, size=2)
    assert memories.absent(WEB, begun) == set()
    for name in ("x", "y"):
        memories.note_absent(WEB, name)
    assert memories.absent(WEB, begun) == {"x", "y"}
    memories.note_attempt(WEB, "x")
    assert memories.absent(WEB, begun) == {"y"}
    assert memories.absent(WEB, at(20, batches=1)) == set(), "another leader was at work"


def test_an_instance_is_known_to_have_a_name_until_this_process_tries_to_make_one() -> None:
    memories, begun = Memories(), at(10, batches=1, size=2)
    memories.absent(WEB, begun)
    memories.note_found(WEB, "x", "1")
    assert memories.is_found(WEB, begun, "x", "1")
    assert not memories.is_found(WEB, begun, "x", "2"), "another"
    assert not memories.is_found(WEB, begun, "y", "1")
    memories.note_attempt(WEB, "x")
    assert not memories.is_found(WEB, begun, "x", "1")


def test_what_is_gone_is_forgotten() -> None:
    memories = Memories()
    memories.note_told(WEB, at(10), "10")
    memories.forget(WEB)
    assert not memories.is_current(WEB, at(10))


def test_a_name_is_in_doubt_from_the_attempt_until_the_api_server_has_said_what_has_it() -> None:
    memories, seen = Memories(), at(10, batches=1, size=2)
    assert memories.doubted(WEB, seen) == frozenset()
    for name in ("a", "b", "c"):
        memories.note_attempt(WEB, name)
    memories.note_absent(WEB, "a")
    memories.note_found(WEB, "b", "uid")
    assert memories.doubted(WEB, seen) == {"c"}
