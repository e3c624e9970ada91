# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restarted virt-handler on one node: what it must find out about guests without having seen their past.

A user's pause, whatever paused the guest before; suspended and lost guests; starts with an unknown result; and an
orphan that cannot be inspected.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.domain.state import Life, State
from tests.controlplane.simulation.comebacks import HELD_SECONDS, UP_SECONDS, bring_up, stay_away
from tests.controlplane.simulation.launcher import BY_PERSON, OFF, STALLED
from tests.controlplane.simulation.node_keeper import NodeKeeper, keeping
from tests.controlplane.simulation.truth import condition
from tests.support.breach import Breach
from tests.support.calls import LOOK
from tests.support.store import OVER

WEB = Key("default", "web")
SUSPENDED = State(Life.SUSPENDED, "unknown")
LOST_AS = (None, OFF, State(Life.SHUT_OFF, "failed"), State(Life.SHUT_OFF, "daemon"))
"""States in which a restarted libvirtd may show a domain whose QEMU is gone."""
OFTEN = 0.8
LONG_SECONDS = 400.0
"""Longer than the longest pause between two resumes."""


class GuestPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def run(self, times: int) -> None:
        """Run `times` scenes, each on a new node. Raises Breach."""
        for scene in self._rng.sample(SCENES, times):
            with keeping(self._rng) as keeper:
                scene(self, keeper)

    def _maybe(self, *doings: Callable[[], None]) -> None:
        for doing in doings:
            if self._rng.random() < OFTEN:
                doing()

    def _stays_paused(self, one: NodeKeeper) -> None:
        """A guest paused by a user stays paused, over restarts and other reasons to pause, until a user unpauses it."""
        uid = bring_up(one, self._rng, "web")
        guest = one.launcher(uid)
        one.advance(20.0)
        self._maybe(guest.stall)
        one.handler.press(guest, "pause")
        if self._rng.random() < 0.2:  # it was resumed in the meantime
            one.advance(5.0)
        one.advance(20.0, until=lambda: _paused(one) == "PausedByUser")
        if _paused(one) != "PausedByUser":
            raise Breach(f"guests: a person has paused a guest, and it is said to be {_paused(one) or 'not paused'}")
        for _unused in range(2):
            self._maybe(one.restart)
            one.advance(LONG_SECONDS / 2)
            if guest.state not in (STALLED, BY_PERSON) or _paused(one) != "PausedByUser":
                raise Breach(f"guests: a person has paused a guest, and it is {guest.state}, said: {_paused(one)}")
        one.handler.press(guest, "unpause")
        one.advance(20.0, until=lambda: not _paused(one))
        if not guest.is_going_on or _paused(one):
            raise Breach(f"guests: a person has unpaused a guest, and it is {guest.state}, said: {_paused(one)}")

    def _goes_on_after_error(self, one: NodeKeeper) -> None:
        """A guest paused only by an I/O error is resumed automatically, over restarts."""
        guest = one.launcher(bring_up(one, self._rng, "web"))
        for _unused in range(2):
            guest.stall()
            self._maybe(one.restart)
            one.advance(LONG_SECONDS, until=lambda: guest.is_going_on)
            if not guest.is_going_on:
                raise Breach("guests: an I/O error has paused a guest, and nobody lets it go on")

    def _is_suspended(self, one: NodeKeeper) -> None:
        """A suspended guest exists: it is reported as running, and is ended when it should end."""
        uid = bring_up(one, self._rng, "web")
        guest = one.launcher(uid)
        guest.suspend()
        self._maybe(one.restart)
        one.advance(self._rng.choice((20.0, 150.0)))
        if not one.runs(uid) or one.phase_of("web") != "Running":
            raise Breach(f"guests: a guest is suspended, and its machine is {one.phase_of('web')}")
        one.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
        one.advance(UP_SECONDS, until=lambda: one.phase_of("web") in OVER)
        if one.runs(uid) or one.phase_of("web") not in OVER:
            raise Breach(f"guests: a suspended guest is to end, and its machine is {one.phase_of('web')}")

    def _is_lost(self, one: NodeKeeper) -> None:
        """A guest that has run and that libvirt no longer knows is detected as gone."""
        uid = bring_up(one, self._rng, "web")
        one.advance(self._rng.choice((0.0, 30.0)))
        self._lose(one, uid)
        self._judge_lost(one)

    def _was_never_seen(self, one: NodeKeeper) -> None:
        """The end of a guest whose start was never observed is detected too: the process that started it has ended."""
        uid = one.make("web")
        one.held = lambda call: call.verb == "finish start of"
        one.advance(5.0)
        one.grant("web", uid)
        one.advance(UP_SECONDS, until=lambda: one.is_asking("finish start of") or one.launcher(uid).has_run)
        one.restart(meanwhile=lambda: self._bring_to_end(one, uid))
        one.held = lambda _unused: False
        self._judge_lost(one)

    def _bring_to_end(self, one: NodeKeeper, uid: str) -> None:
        guest = one.launcher(uid)
        if guest.is_starting:
            guest.finish_start()
        guest.lose_daemon()
        guest.end_guest("crashed")
        guest.state = State(Life.SHUT_OFF, "daemon")

    def _lose(self, one: NodeKeeper, uid: str) -> None:
        guest = one.launcher(uid)
        guest.lose_daemon()
        guest.end_guest("crashed")
        guest.state = self._rng.choice(LOST_AS)
        self._maybe(one.restart)

    @staticmethod
    def _judge_lost(one: NodeKeeper) -> None:
        one.advance(UP_SECONDS, until=lambda: one.phase_of("web") in OVER)
        if one.phase_of("web") not in OVER:
            raise Breach(
                f"guests: a guest is gone, libvirt does not know how, and its machine is {one.phase_of('web')}"
            )

    def _cannot_be_looked_at(self, one: NodeKeeper) -> None:
        """An orphan that cannot be inspected may run: nothing starts beside it before the timeout."""
        lost = bring_up(one, self._rng, "lost")
        newcomer = stay_away(one, self._rng, self._rng.choice(("over", "granted", "gone")), "lost")
        one.launcher(lost).lose_daemon()
        one.silent.add(lost)
        if self._rng.random() < 0.5:  # otherwise the node itself shows that its QEMU exists
            one.fate = lambda call: "request lost" if call.verb == LOOK else "done"
        self._maybe(one.restart)
        back_at = one.true.seconds
        one.advance(HELD_SECONDS * 2, until=lambda: one.runs(newcomer))
        waited = one.true.seconds - back_at
        if one.runs(newcomer) and one.runs(lost) and waited < HELD_SECONDS - 1.0:
            raise Breach(f"guests: nobody can look at an orphan, and another machine starts after {waited:.1f} s")
        if not one.runs(newcomer):
            raise Breach("guests: nobody can look at an orphan, and the next machine never starts")


def _paused(one: NodeKeeper) -> str:
    """Return the reported reason of a pause; "" for none."""
    paused = condition(one.store.find(VIRTUAL_MACHINE_INSTANCE, WEB) or {"status": {}}, "Paused")
    return str(paused.get("reason", "")) if paused.get("status") == "True" else ""


SCENES = (
    *(GuestPlay._stays_paused, GuestPlay._is_lost) * 2,
    GuestPlay._goes_on_after_error,
    GuestPlay._is_suspended,
    GuestPlay._was_never_seen,
    GuestPlay._cannot_be_looked_at,
)
