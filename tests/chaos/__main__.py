# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random users and random faults on two nodes, and an observer independent of the API: `python -m tests.chaos`.

The actions follow from the seed, their effects also from the machine. Every action is printed; the last line is one
line of JSON. The exit code is 1 after any violation.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable

from lab import Lab
from tests.chaos.faults import Faults
from tests.chaos.journal import Journal
from tests.chaos.migrations import migrations
from tests.chaos.observer import Observer
from tests.chaos.people import People
from tests.chaos.roster import Roster
from tests.chaos.verdict import ended_for_no_reason, not_as_declared
from tests.chaos.watch import watching
from tests.e2e.cluster import Cluster
from tests.e2e.console import NotYet
from tests.e2e.deployed import deployed

APART_SECONDS = (0.0, 1.5)
GUESTS_SECONDS, OWNERS_SECONDS = 0.2, 0.5
"""Between two polls."""
SETTLED_SECONDS = 720.0
"""A crash loop's last wait is five minutes."""

Say = Callable[[str], None]


def chaos(cluster: Cluster, *, seconds: float, seed: int, say: Say) -> list[str]:
    """Run for `seconds`, let the cluster settle, delete everything; return the violations."""
    dice, journal = random.Random(seed), Journal(say)
    people, faults = People(cluster, dice, journal), Faults(cluster, random.Random(seed + 1), journal)
    observer, roster = Observer(cluster.name), Roster(Lab(cluster.name).api())
    with watching(observer.look, GUESTS_SECONDS), watching(roster.look, OWNERS_SECONDS):
        try:
            while time.monotonic() < journal.began + seconds:
                faults.act()
                people.act()
                time.sleep(dice.uniform(*APART_SECONDS))
        finally:
            faults.heal()
        wrong = _settle(cluster, people, observer)
        people.leave()
        wrong += _is_left(cluster, observer)
        wrong += [*observer.doubles, *ended_for_no_reason(observer, roster, journal), *journal.surprises]
    figures = {"seed": seed, "deeds": len(journal.deeds), "guests": len(observer.lives), "looks": observer.looks}
    say(json.dumps({**figures, "wrong": wrong}))
    return wrong


def _settle(cluster: Cluster, people: People, observer: Observer) -> list[str]:
    """Wait until everything matches its declaration; return what does not."""
    cluster.healthy()
    people.let_go_on()
    wrong: list[str] = []

    def is_settled() -> bool:
        wrong[:] = not_as_declared(cluster, observer)
        return not wrong

    try:
        cluster.eventually(is_settled, seconds=SETTLED_SECONDS, what="everything is as declared")
    except NotYet:
        return wrong
    return []


def _is_left(cluster: Cluster, observer: Observer) -> list[str]:
    """Return what remains of machines after everything was deleted."""

    def left() -> list[str]:
        objects = cluster.kubectl("get", "vm,vmi,vmirs,pods", "-n", "default", "-o", "name").split()
        return [*objects, *map(str, observer.look())]

    try:
        cluster.eventually(lambda: not left(), what="nothing is left")
    except NotYet:
        return [f"left: {name}" for name in left()]
    return []


def main(argv: list[str] | None = None) -> int:
    """Run on its own cluster."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for how long (default: an hour)")
    parser.add_argument("--migrations", type=int, default=0, help="do so many migrations instead, each with a fault")
    parser.add_argument("--seed", type=int, default=None, help="of what is done; another each time by default")
    chosen = parser.parse_args(argv)
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    with deployed("chaos", nodes=2) as cluster:
        if chosen.migrations:
            wrong = migrations(cluster, count=chosen.migrations, seed=seed, say=lambda text: print(text, flush=True))
            return 1 if wrong else 0
        wrong = chaos(cluster, seconds=chosen.seconds, seed=seed, say=lambda text: print(text, flush=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
