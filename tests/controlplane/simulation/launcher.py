# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The true state of a launcher: supervisor, libvirtd, domain, QEMU, its directory. It knows neither the API nor
caches.

A start has two steps: after the first the domain is active and may still fail. A shutdown request may be ignored by the
guest. libvirtd may die and restart; the guest survives it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life, State, derive_outcome
from tests.controlplane.simulation.agent import FREEZE, THAW, Agent, AgentError

OFF = State(Life.SHUT_OFF, "unknown")
STARTING = State(Life.PAUSED, "starting_up")
BOOTED = State(Life.RUNNING, "booted")
ENDS = {"shut down": "shutdown", "crashed": "crashed", "destroyed": "destroyed", "start failed": "failed"}
"""How a guest ends, and libvirt's reason for it."""
STALLED = State(Life.PAUSED, "ioerror")
PAUSED_BY_USER = State(Life.PAUSED, "user")
GOING_DOWN = State(Life.SHUTTING_DOWN, "unknown")
"""The guest has halted, and QEMU has yet to end, which may hang (an unresponsive disk)."""
NOT_UP = (Life.SHUT_OFF, Life.CRASHED, Life.UNKNOWN)
_VCPU = re.compile('<vcpu placement="static"(?: current="(?P<current>[0-9]+)")?>(?P<most>[0-9]+)</vcpu>')
UNSEEN = OFF
"""The state of a domain whose guest ended while there was no libvirtd."""


def is_provisional(state: State) -> bool:
    """Whether QEMU is being started. Not by State.is_starting, which is under test."""
    return (state.life, state.reason) == (STARTING.life, STARTING.reason)


def is_alive(state: State) -> bool:
    """Whether a QEMU of the run exists. Not by Life.is_up, which is under test."""
    return state.life not in NOT_UP


class DomainError(Exception):
    """libvirt refuses. is_wrong_state: the domain is in the wrong state."""

    def __init__(self, text: str, *, is_wrong_state: bool = False) -> None:
        super().__init__(text)
        self.is_wrong_state = is_wrong_state


@dataclass(slots=True)
class Launcher:
    """The processes and directory of a Pod. The entry stays until all are gone."""

    pod: Key
    pod_uid: str
    vmi: Key
    vmi_uid: str
    fails_to_boot: bool = False
    """Its kernel does not exist: QEMU ends as soon as it runs."""
    is_up: bool = True
    has_directory: bool = True
    is_listening: bool = False
    daemon: int = 0
    """Grows with each libvirtd."""
    state: State | None = None
    """None: no domain is defined."""
    xml: str = ""
    """The XML of its definition."""
    is_starting: bool = False
    starts_paused: bool = False
    """Once it is started, the guest stays paused."""
    hesitation: int = 0
    """How many steps QEMU delays its start while no client waits for it."""
    has_run: bool = False
    has_ended_unseen: bool = False
    """While there was no libvirtd."""
    is_deaf: bool = False
    halts: bool = False
    """Guest and QEMU do not end in the same step; when the guest is deaf too, QEMU hangs in between."""
    is_to_go_on: bool = False
    """The last successful request of a user was to resume."""
    is_overruled: bool = False
    """A guest paused by a user was resumed without a user's request."""
    changes: int = 0
    """Grows with every event that libvirt sends."""
    agent: Agent | None = None
    """The agent on the channel."""
    boots_with: Agent | None = None
    """The agent after the boot."""
    agents: int = 0
    """How often an agent connected or disconnected."""
    is_frozen: bool = False
    """Its file systems are frozen: the true state of the guest, whatever its agent says."""
    is_told_to_end: bool = False
    exit_code: int | None = None
    message: str = ""

    @property
    def is_running_guest(self) -> bool:
        return self.state is not None and is_alive(self.state)

    @property
    def is_going_down(self) -> bool:
        """The guest has halted, and nothing keeps QEMU from ending."""
        return self.state == GOING_DOWN and not self.is_deaf

    def listen(self) -> None:
        """Start a libvirtd. When the guest has ended without one, about every second one does not know the domain."""
        self.is_listening = True
        self.daemon += 1
        if self.has_run and self.state == UNSEEN and self.daemon % 2:
            self.state = None

    def lose_daemon(self) -> None:
        self.is_listening = False

    def define(self, xml: str) -> None:
        self.xml = xml
        if self.state is None:
            self._become(OFF)

    def launch(self, *, is_paused: bool = False) -> None:
        """Execute QEMU: the domain is active from now on, whatever the result of the start.

        is_paused: the guest then waits for an unpause.
        """
        if self.is_running_guest:
            raise DomainError("domain is already running", is_wrong_state=True)
        self.is_starting, self.starts_paused = True, is_paused
        self._become(STARTING)

    def finish_start(self) -> None:
        """Let libvirtd complete its start."""
        if not self.is_starting:
            raise DomainError("the domain ended while it was started")
        self.is_starting = False
        if self.fails_to_boot:
            self._become(State(Life.SHUT_OFF, ENDS["start failed"]))
            raise DomainError("could not open kernel file")
        self.has_run = True
        self._become(PAUSED_BY_USER if self.starts_paused else BOOTED)
        self.let_agent(self.boots_with)

    def go_on_starting(self) -> None:
        """Let QEMU take its time, or be up, with or without a client that waits."""
        if self.hesitation:
            self.hesitation -= 1
        else:
            self.finish_start()

    def plug(self, count: int) -> None:
        """Set the number of virtual CPUs of the guest; libvirt reports it only where more are possible."""
        vcpu = _VCPU.search(self.xml)
        if not self.is_running_guest or vcpu is None:
            raise DomainError("domain is not running", is_wrong_state=True)
        most = int(vcpu["most"])
        if not 0 < count <= most:
            raise DomainError(f"requested vcpus is greater than max allowable vcpus: {count} > {most}")
        current = f' current="{count}"' if count < most else ""
        self.xml = _VCPU.sub(f'<vcpu placement="static"{current}>{most}</vcpu>', self.xml)

    @property
    def vcpus(self) -> int:
        """How many virtual CPUs the guest sees."""
        vcpu = _VCPU.search(self.xml)
        return 0 if vcpu is None else int(vcpu["current"] or vcpu["most"])

    def stall(self) -> None:
        """Let the guest meet an I/O error: QEMU pauses it, unless it is paused already."""
        if self._is_going_on:
            self._become(STALLED)

    def suspend(self) -> None:
        """Let the guest suspend to memory: it ignores requests, and its QEMU exists."""
        if self._is_going_on:
            self._become(State(Life.SUSPENDED, "unknown"))

    def pause(self) -> None:
        """Pause as a user; a pause by an I/O error keeps its reason, as in libvirt."""
        self.is_to_go_on = False
        if self._is_going_on:
            self._become(PAUSED_BY_USER)

    def resume(self, *, by_user: bool = False) -> None:
        """Resume a paused guest; another one stays as it is."""
        self.is_overruled |= self.state == PAUSED_BY_USER and not by_user
        if self.state in (STALLED, PAUSED_BY_USER):
            self._become(State(Life.RUNNING, "unpaused"))

    @property
    def _is_going_on(self) -> bool:
        return self.state is not None and self.state.life is Life.RUNNING

    @property
    def is_going_on(self) -> bool:
        """Whether its vCPUs run."""
        return self._is_going_on

    def let_agent(self, agent: Agent | None) -> None:
        """Connect or disconnect the guest's agent."""
        if agent is not self.agent:
            self.agent, self.agents = agent, self.agents + 1

    def ask_agent(self, command: str) -> str:
        """Send a command to the agent. Raises AgentError."""
        if self.agent is None or not self._is_going_on:
            raise AgentError("no agent", is_silent=True)
        answer = self.agent.answer(command, is_frozen=self.is_frozen)
        if command in (FREEZE, THAW):
            self.is_frozen = command == FREEZE
        return answer

    def press_power(self) -> None:
        if not self.is_running_guest:
            raise DomainError("domain is not running", is_wrong_state=True)
        if not self._is_going_on:  # a paused guest does not respond
            return
        if self.halts:
            self._become(GOING_DOWN)
        elif not self.is_deaf:
            self.end_guest("shut down")

    def destroy(self) -> None:
        if not self.is_running_guest:
            raise DomainError("domain is not running", is_wrong_state=True)
        self.end_guest("destroyed")

    def end_guest(self, how: str) -> None:
        """End QEMU: shut down, crashed, destroyed."""
        if self.is_running_guest:
            self.is_starting = False
            self.has_ended_unseen = not self.is_listening
            self._become(State(Life.SHUT_OFF, ENDS[how]) if self.is_listening else UNSEEN)

    @property
    def is_over(self) -> bool:
        """Whether its supervisor has a reason to exit."""
        return self.is_up and not self.is_running_guest and (self._outcome is not None or self.is_told_to_end)

    @property
    def _outcome(self) -> str | None:
        return None if self.state is None else derive_outcome(self.state, is_acpi_expected=True)

    def end_if_over(self) -> bool:
        """Let the supervisor exit with the guest's result once there is one, or on a signal."""
        if not self.is_over:
            return False
        outcome = self._outcome
        self.exit(0 if outcome != "Failed" else 1, "" if outcome != "Failed" else "the guest crashed")
        return True

    def exit(self, code: int, message: str = "") -> None:
        """End all processes: QEMU does not outlive its supervisor."""
        self.end_guest("crashed")
        self.is_up = self.is_listening = False
        self.exit_code, self.message = code, message
        self.changes += 1

    def _become(self, state: State) -> None:
        self.state = state
        if not is_alive(state):
            self.let_agent(None)
            self.is_frozen = False
        self.changes += 1
