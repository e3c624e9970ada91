# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that ends needs an action as its reason; without one it was lost."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.chaos.journal import Deed, Journal
from tests.chaos.observer import Guest, Life, Observer
from tests.chaos.roster import Roster
from tests.chaos.verdict import GRACE_SECONDS, ended_for_no_reason, not_as_declared

BEGAN, ENDED = 1000.0, 1060.0


def complaints(*deeds: Deed, is_over: bool = True) -> list[str]:
    """Return the violations for a guest of vm/a on node-1 that was seen from BEGAN to ENDED."""
    observer, roster, journal = Observer("chaos"), Roster(cast("Any", None)), Journal(lambda _text: None, BEGAN)
    observer.lives[Guest("machine", "uid", "node-1", 7, 1)] = Life(BEGAN, ENDED, is_over)
    roster.names["uid"] |= {"vm/a", "vmi/a"}
    journal.deeds.extend(deeds)
    return list(ended_for_no_reason(observer, roster, journal))


@pytest.mark.parametrize("name", ["vm/a", "vmi/a", "uid/uid", "node/node-1"])
def test_a_guest_ended_by_an_action_is_not_lost(name: str) -> None:
    assert not complaints(Deed(ENDED - 1, "stop", frozenset({name})))


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(Deed(ENDED - 1, "kill virt-handler", frozenset()), id="a fault that spares guests"),
        pytest.param(Deed(ENDED - 1, "stop", frozenset({"vm/b", "node/node-2"})), id="another's"),
        pytest.param(Deed(ENDED + 10, "stop", frozenset({"vm/a"})), id="afterwards"),
        pytest.param(Deed(BEGAN - GRACE_SECONDS - 1, "stop", frozenset({"vm/a"})), id="long before"),
    ],
)
def test_a_guest_that_ends_without_an_action_is_lost(deed: Deed) -> None:
    assert len(complaints(deed)) == 1


def test_a_guest_that_still_runs_is_not_lost() -> None:
    assert not complaints(is_over=False)


class Settled:
    """A cluster of one VM, as its objects report it."""

    def __init__(self, strategy: str, word: str, phase: str | None) -> None:
        meta, ready = {"name": "a", "uid": "vm-uid"}, phase == "Running"
        status = {"printableStatus": word, "ready": ready}
        owner = {"controller": True, "uid": "vm-uid"}
        vmi = {"metadata": {"name": "a", "uid": "uid", "ownerReferences": [owner]}, "status": {"phase": phase}}
        vm = {"metadata": meta, "spec": {"runStrategy": strategy}, "status": status}
        self._lists = {"vm": [vm], "vmi": [vmi] if phase else [], "pods": [], "vmirs": []}

    def list(self, kind: str, *_unused: str) -> list[dict[str, Any]]:
        return self._lists[kind]


class Counted:
    """An observer with given guests."""

    def __init__(self, *instances: str) -> None:
        self._instances = instances

    def look(self) -> list[Guest]:
        return [Guest("machine", instance, "node-1", 7, 1) for instance in self._instances]


@pytest.mark.parametrize(
    ("strategy", "word", "phase", "guests", "is_right"),
    [
        ("Always", "Running", "Running", ("uid",), True),
        ("Always", "Running", "Running", (), False),
        ("Always", "Running", "Running", ("uid", "uid"), False),
        ("Always", "Stopped", None, (), False),
        ("Always", "CrashLoopBackOff", "Failed", (), False),
        ("Halted", "Stopped", None, (), True),
        ("Halted", "Running", "Running", ("uid",), False),
        ("Manual", "Stopped", "Failed", (), True),
        ("Manual", "Running", "Failed", (), False),
        ("Manual", "Stopped", None, ("another",), False),
    ],
)
def test_a_settled_cluster_matches_its_declaration_or_the_difference_is_named(
    strategy: str, word: str, phase: str | None, guests: tuple[str, ...], is_right: bool
) -> None:
    cluster, observer = Settled(strategy, word, phase), Counted(*guests)

    assert (not_as_declared(cast("Any", cluster), cast("Any", observer)) == []) is is_right
