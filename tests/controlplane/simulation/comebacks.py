# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A partitioned node whose machines start elsewhere: no guest of the node may run beside its successor.

The world of run.py has no orphan that outlives its run, so it never needs this code. Here the node comes back, or
notices nothing. Its own guests run on; orphans are ended in time, and nothing starts before.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.listing import DURATION_SECONDS
from tests.controlplane.simulation.node_keeper import NodeKeeper, keeping
from tests.support.breach import Breach
from tests.support.calls import LOST
from tests.support.store import OVER

WAYS = ("over", "granted", "gone", "another")
"""How a run is taken from this node."""
UNNOTICED = ("gone", "another")
"""Cases in which the node only sees that the VMI has left its cache."""
HELD_SECONDS = 60.0
"""How long an orphan that does not end blocks other starts."""
AT_ONCE_SECONDS = 5.0
"""The time limit for the end of an orphan that can be ended."""
ORPHAN_SECONDS, LATENESS = 60.0, 20.0
AGAIN_SECONDS = 10.0
UP_SECONDS = 120.0
"""The time limit for the start of a machine, with its first failures."""
START = ("define", "launch", "finish start of")


class ReturnPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def run(self, times: int) -> None:
        """Run `times` scenes, each on a new node. Raises Breach."""
        for scene in self._rng.sample(SCENES, times):
            with keeping(self._rng) as keeper:
                scene(self, keeper)

    def _comes_back(self, one: NodeKeeper) -> None:
        """After a silence orphans are ended at once, with retries; others start after them."""
        guests = {name: bring_up(one, self._rng, name) for name in ("kept", "lost")}
        how, is_hanging = self._rng.choice(WAYS), self._rng.random() < 0.3
        if is_hanging:
            one.held = lambda call: call.verb == "destroy"
        newcomer = stay_away(one, self._rng, how, "lost")
        back_at = one.true.seconds
        is_clear: Callable[[], bool] = lambda: not one.runs(guests["lost"])  # noqa: E731
        one.advance(HELD_SECONDS + 5.0, until=lambda: is_clear() or one.runs(newcomer))
        if is_hanging:
            self._judge_hold(one, guests["lost"], back_at, newcomer)
            one.held = lambda _unused: False
        elif not is_clear() or one.true.seconds - back_at > AT_ONCE_SECONDS:
            took = one.true.seconds - back_at
            raise Breach(f"comebacks: {how}: an orphan is not ended {took:.1f} s after its node came back")
        one.advance(UP_SECONDS, until=lambda: is_clear() and one.phase_of("new") == "Running")
        if not is_clear() or one.phase_of("new") != "Running":
            raise Breach(f"comebacks: {how}: the node came back, and the next machine is {one.phase_of('new')}")
        self._judge_kept(one, guests["kept"])

    def _judge_hold(self, one: NodeKeeper, lost: str, back_at: float, newcomer: str) -> None:
        """An orphan that libvirt does not end delays others for a while, and is retried."""
        waited = one.true.seconds - back_at
        if one.runs(newcomer) and waited < HELD_SECONDS - 1.0:
            raise Breach(f"comebacks: an orphan runs on, and another machine starts after {waited:.1f} s")
        if not any(each.call.verb == "destroy" for each in one.handler.passes):
            raise Breach("comebacks: an orphan runs on, and nobody tells it to end")
        del lost

    def _notices_nothing(self, one: NodeKeeper) -> None:
        """A guest whose VMI is no longer in the cache is checked with the API server after a minute."""
        guests = {name: bring_up(one, self._rng, name) for name in ("kept", "lost")}
        one.advance(self._rng.choice((0.0, 30.0, 100.0)))
        how, lost_at = self._rng.choice(UNNOTICED), one.true.seconds
        one.take_away("lost", how)
        one.advance(ORPHAN_SECONDS + LATENESS, until=lambda: not one.runs(guests["lost"]))
        took = one.true.seconds - lost_at
        if one.runs(guests["lost"]) or took < ORPHAN_SECONDS - 1.0:
            reported = "is not ended" if one.runs(guests["lost"]) else "is ended"
            raise Breach(f"comebacks: {how}: a guest whose VMI is shown no more {reported} after {took:.1f} s")
        self._judge_kept(one, guests["kept"])

    def _is_starting(self, one: NodeKeeper, verb: str) -> None:
        """An orphan found while it starts is ended too."""
        kept = bring_up(one, self._rng, "kept")
        lost = one.make("lost")
        one.held = lambda call: call.verb == verb and call.asked["pod_uid"] == lost
        one.advance(5.0)
        one.grant("lost", lost)
        one.advance(UP_SECONDS, until=lambda: one.is_asking(verb))
        is_under_way = one.is_asking(verb)  # QEMU may be up by then
        how = self._rng.choice(WAYS)
        newcomer = stay_away(one, self._rng, how, "lost")
        back_at = one.true.seconds
        one.advance(self._rng.choice((1.0, 15.0, 40.0)))
        if is_under_way and one.runs(newcomer):
            raise Breach(f"comebacks: {how}: a machine starts beside one whose start is under way and that is nobody's")
        one.held = lambda _unused: False
        one.advance(AGAIN_SECONDS + AT_ONCE_SECONDS, until=lambda: not one.runs(lost) and one.runs(newcomer))
        if one.runs(lost):
            took = one.true.seconds - back_at
            raise Breach(
                f"comebacks: {how}: a start of nobody's has come to its end, and its guest runs ({took:.1f} s)"
            )
        one.advance(UP_SECONDS, until=lambda: one.phase_of("new") == "Running")
        if one.phase_of("new") != "Running":
            raise Breach(f"comebacks: {how}: the node came back, and the next machine is {one.phase_of('new')}")
        self._judge_kept(one, kept)

    def _is_followed(self, one: NodeKeeper) -> None:
        """A machine that reuses a name inherits nothing: it runs undisturbed."""
        first = bring_up(one, self._rng, "web")
        one.store.delete(VIRTUAL_MACHINE_INSTANCE, Key("default", "web"))
        one.advance(UP_SECONDS, until=lambda: one.phase_of("web") in OVER)
        if one.phase_of("web") not in OVER:
            raise Breach(f"comebacks: a machine is deleted, and is {one.phase_of('web')}")
        one.finish("web", first)
        second = one.make("web", is_begun=True)
        one.grant("web", second)
        one.advance(UP_SECONDS, until=lambda: one.phase_of("web") == "Running")
        one.advance(self._rng.choice((40.0, 100.0)))
        if one.phase_of("web") != "Running":
            raise Breach(f"comebacks: the second machine of a name is {one.phase_of('web')}, and nobody has ended it")
        self._judge_kept(one, second)

    def _gets_no_answer(self, one: NodeKeeper) -> None:
        """A start without a response is looked up before the next one, even when libvirt sends no event."""
        uid, verb = one.make("web"), self._rng.choice(START[1:])
        one.held = lambda call: call.verb == "define"
        one.advance(5.0)
        one.grant("web", uid)
        one.advance(UP_SECONDS, until=lambda: one.is_asking("define"))
        one.held, one.is_deaf = lambda _unused: False, True
        lost = [self._rng.choice(LOST) for _unused in range(self._rng.choice((1, 2, 3)))]
        silent = (verb, "look at") if self._rng.random() < 0.5 else (verb,)
        one.fate = lambda call: lost.pop() if lost and call.verb in silent else "done"
        if self._rng.random() < 0.5:
            one.meanwhile = lambda call: self._end(one, uid, "shut down") if call.verb in START else None
        one.advance(5.0)
        self._judge_start(one)

    def _ends_unseen(self, one: NodeKeeper) -> None:
        """A guest whose start succeeded has run, even if the next libvirtd does not know it."""
        uid = one.make("web")
        one.meanwhile = lambda call: self._lose(one, uid) if call.verb == START[-1] else None
        one.advance(5.0)
        one.grant("web", uid)
        one.advance(UP_SECONDS, until=lambda: one.launcher(uid).has_run)
        one.advance(5.0)
        self._judge_start(one)

    def _judge_start(self, one: NodeKeeper) -> None:
        one.is_deaf, one.meanwhile = False, lambda _unused: None
        one.advance(UP_SECONDS, until=lambda: one.phase_of("web") in (*OVER, "Running"))
        if one.phase_of("web") not in (*OVER, "Running"):
            raise Breach(f"comebacks: a start was not answered, and the machine is {one.phase_of('web')}")

    @staticmethod
    def _end(one: NodeKeeper, uid: str, how: str) -> None:
        if one.launcher(uid).has_run:
            one.launcher(uid).end_guest(how)

    def _lose(self, one: NodeKeeper, uid: str) -> None:
        one.launcher(uid).lose_daemon()
        self._end(one, uid, "crashed")

    @staticmethod
    def _judge_kept(one: NodeKeeper, kept: str) -> None:
        times = [at for at, uid in one.ends if uid == kept]
        if times or not one.runs(kept):
            raise Breach("comebacks: a guest is told to end that is its node's own")


def bring_up(one: NodeKeeper, rng: random.Random, name: str) -> str:
    """Start a machine; return the UID of its Pod."""
    uid = one.make(name)
    one.advance(rng.choice((0.0, 5.0)))
    one.grant(name, uid)
    one.advance(UP_SECONDS, until=lambda: one.phase_of(name) == "Running")
    if one.phase_of(name) != "Running":
        raise Breach(f"comebacks: all goes well, and {name} is {one.phase_of(name)}")
    return uid


def stay_away(one: NodeKeeper, rng: random.Random, how: str, name: str) -> str:
    """Partition the node for the duration of its Lease; take one machine from it and give it another meanwhile."""
    one.is_cut_off = True
    one.advance(rng.choice((5.0, 40.0)))
    one.take_away(name, how)
    newcomer = one.make("new")
    one.advance(DURATION_SECONDS + rng.choice((0.0, 60.0)))
    one.is_cut_off = False
    one.grant("new", newcomer)
    return newcomer


def _starting(verb: str) -> Callable[[ReturnPlay, NodeKeeper], None]:
    return lambda play, item: play._is_starting(item, verb)


SCENES: tuple[Callable[[ReturnPlay, NodeKeeper], None], ...] = (
    ReturnPlay._comes_back,
    ReturnPlay._notices_nothing,
    *map(_starting, START),
    ReturnPlay._is_followed,
    ReturnPlay._gets_no_answer,
    ReturnPlay._ends_unseen,
)
