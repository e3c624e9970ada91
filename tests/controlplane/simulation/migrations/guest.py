# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The true state of a migrating guest: two QEMUs, one of which has the machine, and libvirt's part in both.

Used by transit, in addition to the usual launcher. It knows neither objects nor processes. Each method is one step;
anything may happen between two steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.domain.state import Life, State
from tests.controlplane.simulation.launcher import OFF, PAUSED_BY_USER, DomainError, Launcher

STANDS_STILL = State(Life.PAUSED, "migration")
"""At the source when all is sent; at the target until all has arrived."""
MIGRATED = State(Life.SHUT_OFF, "migrated")
TAKEN_BACK = State(Life.RUNNING, "migration_canceled")


@dataclass(slots=True)
class MigratingLauncher(Launcher):
    """The launcher of a machine that may migrate."""

    came_from: MigratingLauncher | None = None
    """The source of its guest."""
    is_left: bool = False
    """A migration has stopped it, and nothing has resumed it since."""
    is_incoming: bool = False
    """Its QEMU waits for more data."""
    has_all: bool = False
    """The complete guest has arrived, and was kept."""
    has_sent_all: bool = False
    """The target has, or had, its complete state."""
    is_old: bool = False
    """The guest ran on at the source after all was sent: the state here is outdated."""
    copies: list[MigratingLauncher] = field(default_factory=list)
    """Launchers with the complete, current state of its guest."""
    stream: Stream | None = None

    @property
    def has_the_guest(self) -> bool:
        """Whether this QEMU is the machine, or could become it: with its complete state."""
        if not self.is_running_guest or self.is_incoming:
            return False
        return self.came_from is None or self.has_run or not self.is_old

    @property
    def has_left(self) -> bool:
        """Whether QEMU has ended here because the guest has moved."""
        return self.state == MIGRATED

    @property
    def is_being_sent(self) -> bool:
        return self.stream is not None and not self.stream.is_over and self.is_running_guest

    @property
    def is_executing(self) -> bool:
        """Whether this QEMU exists, and the guest has run in it."""
        return self.is_running_guest and self.has_run

    def resume(self, *, by_user: bool = False) -> None:
        """Resume; a pause by a migration is no user's pause."""
        if self.is_incoming:
            raise DomainError("its memory is yet to come", is_wrong_state=True)
        if not self.is_left:
            Launcher.resume(self, by_user=by_user)
            self._note_run()
        elif self.is_running_guest:
            self._go_on(State(Life.RUNNING, "unpaused"))

    def take_in(self, source: MigratingLauncher, xml: str) -> None:
        """Start a QEMU that waits for a guest."""
        if self.is_running_guest or not self.is_listening:
            raise DomainError("domain is already running", is_wrong_state=True)
        self.came_from, self.is_incoming, self.xml = source, True, xml
        self._become(STANDS_STILL)

    def take_rest(self) -> None:
        """Receive the complete state of the source."""
        if not (self.is_running_guest and self.is_incoming):
            raise DomainError("no migration is incoming")

    def finish(self) -> None:
        """Complete the arrival: it stays paused, as if a user had paused it."""
        if not (self.is_running_guest and self.is_incoming):
            raise DomainError("no migration is incoming")
        self.is_incoming, self.is_left, self.has_all = False, True, True
        self._become(PAUSED_BY_USER)

    def drop_incoming(self) -> None:
        """End a QEMU whose migration is lost."""
        if self.is_incoming:
            self.is_incoming = False
            self.end_guest("destroyed")

    def send_all(self, target: MigratingLauncher) -> None:
        """Stop, with everything sent."""
        if not self.is_running_guest:
            raise DomainError("domain is not running", is_wrong_state=True)
        self.is_left = self.is_left or self._is_going_on
        self.has_sent_all = True
        self.copies.append(target)
        if self.is_left:
            self._become(STANDS_STILL)

    def stop_to_be_sent(self) -> None:
        """Stop while the rest is sent; if the migration ended before, it counts as a user's pause."""
        if not self.is_running_guest:
            raise DomainError("domain is not running", is_wrong_state=True)
        if self._is_going_on:
            self.is_left = True
            self._become(STANDS_STILL if self.is_being_sent else PAUSED_BY_USER)

    def take_back(self) -> None:
        """Resume as if nothing had happened."""
        if self.is_running_guest and self.is_left:
            self._go_on(TAKEN_BACK)

    def leave(self) -> None:
        """End: the guest has moved."""
        if self.is_running_guest:
            self._become(MIGRATED if self.is_listening else OFF)

    def _go_on(self, state: State) -> None:
        self.is_left, self.has_run = False, True
        self._become(state)
        self._note_run()

    def _note_run(self) -> None:
        if self._is_going_on:
            for copy in self.copies:
                copy.is_old = True
            self.copies.clear()


@dataclass(slots=True)
class Stream:
    """A libvirt migration between two launchers."""

    source: MigratingLauncher
    target: MigratingLauncher
    is_open: Callable[[], bool]
    """Whether the tunnel is open."""
    remaining: int
    """Remaining steps of the transfer."""
    is_endless: bool = False
    """While it runs, the guest writes faster than it is sent."""
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False
    """libvirt has finished it, or its client is gone."""

    def send(self) -> None:
        """Send a part while the guest runs."""
        self._check()
        self.remaining -= not (self.is_endless and self.source.is_going_on)

    def send_all(self) -> None:
        self._check()
        self.target.take_rest()
        self.source.send_all(self.target)

    def abort(self) -> None:
        """Cancel while that is possible."""
        if self.is_over or self.source.has_sent_all:
            raise DomainError("no job is active on the domain", is_wrong_state=True)
        self.aborted.set()

    def give_up(self) -> None:
        """Let the source resume."""
        self.is_over = True
        self.source.take_back()

    def confirm(self) -> None:
        self.is_over = True
        self.source.leave()

    def _check(self) -> None:
        if self.aborted.is_set():
            raise DomainError("operation aborted: migration job: canceled by client")
        if not self.is_open() or self.is_over:
            raise DomainError("unable to write to socket: Broken pipe")
        if not self.source.is_running_guest:
            raise DomainError("domain is not running")


def notices(launcher: MigratingLauncher, streams: list[Stream]) -> bool:
    """Whether libvirt in a launcher has yet to notice that its incoming migration is lost."""
    mine = [stream for stream in streams if stream.target is launcher]
    is_fed = any(stream.is_open() and not stream.is_over for stream in mine)
    return launcher.is_incoming and launcher.is_listening and not is_fed
