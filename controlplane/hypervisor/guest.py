# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One domain of libvirt: the verbs, what it does, and what its guest's agent answers. No policy in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import libvirt

from controlplane.domain.state import Life, State
from controlplane.hypervisor.calls import DEADLINE_SECONDS, call
from controlplane.hypervisor.errors import AnswerTooLong, Disconnected
from controlplane.hypervisor.intake import ANSWER_BYTES
from controlplane.hypervisor.memory_device import requesting
from controlplane.hypervisor.wire import Wire

Result = TypeVar("Result")

START_SECONDS = 60.0
"""A start takes 0.4 s here, and up to 3 s per GiB where memory is locked or allocated at once."""
ANSWER_LIMIT = 64 << 10
"""Characters of an agent's answer that are handed on. libvirt takes 10 MiB of an agent's, and 4 MiB of libvirtd's."""
ABORT_SECONDS = 30.0
STOP_SECONDS = 45.0
_OTHERS_SECONDS = 35.0
"""So long libvirt waits by itself: 30 s for the end of another question, 5 s for an agent to show that it listens."""

_LIVES = {
    "RUNNING": Life.RUNNING,
    "BLOCKED": Life.BLOCKED,
    "PAUSED": Life.PAUSED,
    "SHUTDOWN": Life.SHUTTING_DOWN,
    "SHUTOFF": Life.SHUT_OFF,
    "CRASHED": Life.CRASHED,
    "PMSUSPENDED": Life.SUSPENDED,
}
_REASONS = {
    Life.RUNNING: "RUNNING",
    Life.PAUSED: "PAUSED",
    Life.SHUTTING_DOWN: "SHUTDOWN",
    Life.SHUT_OFF: "SHUTOFF",
    Life.CRASHED: "CRASHED",
}
_REASON_WORDS = {
    "RUNNING": "BOOTED MIGRATED RESTORED FROM_SNAPSHOT UNPAUSED MIGRATION_CANCELED SAVE_CANCELED WAKEUP CRASHED "
    "POSTCOPY",
    "PAUSED": "USER MIGRATION SAVE DUMP IOERROR WATCHDOG FROM_SNAPSHOT SHUTTING_DOWN SNAPSHOT CRASHED STARTING_UP "
    "POSTCOPY POSTCOPY_FAILED",
    "SHUTDOWN": "USER",
    "SHUTOFF": "SHUTDOWN DESTROYED CRASHED MIGRATED SAVED FAILED FROM_SNAPSHOT DAEMON",
    "CRASHED": "PANICKED",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a migration is: bytes of memory and disks together."""

    total: int = 0
    remaining: int = 0
    sent: int = 0
    dirtied_per_second: int = 0
    """Bytes of memory that the guest writes; so with those sent of it."""
    memory_per_second: int = 0


class Guest:
    """A domain that libvirt knows. Every method raises HypervisorError, NoSuchDomain when it is known no more."""

    def __init__(
        self, domain: Any, name: str, wire: Wire | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        """name: ours, not what the other side calls it. deadline_seconds: of the verbs that have none of their own."""
        self._domain = domain
        self.name = name
        self._wire = Wire() if wire is None else wire
        self._deadline = deadline_seconds

    async def start(self, *, is_paused: bool = False, deadline_seconds: float = START_SECONDS) -> None:
        """Start the defined domain. WrongState when it runs already."""
        flags = libvirt.VIR_DOMAIN_START_PAUSED if is_paused else 0
        await self._call("start", "createWithFlags", flags, deadline_seconds=deadline_seconds)

    async def shutdown(self) -> None:
        """Press the power button. The guest may ignore it. WrongState when it is not running."""
        flags = libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN
        await self._call("shut down", "shutdownFlags", flags)

    async def destroy(self) -> None:
        """End QEMU, with time to flush its disks (SIGTERM before SIGKILL). WrongState when it is not running."""
        await self._call("destroy", "destroyFlags", libvirt.VIR_DOMAIN_DESTROY_GRACEFUL, deadline_seconds=30)

    async def kill(self) -> None:
        """End QEMU when `destroy` could not: SIGKILL after 10 s. What it had not flushed is lost."""
        await self._call("kill", "destroyFlags", 0, deadline_seconds=45)

    async def pause(self) -> None:
        """Stop the guest's processors. One that is paused already stays so for the reason that it has."""
        await self._call("pause", "suspend")

    async def stop_to_send(self) -> None:
        """Stop the guest's processors for the migration that is under way. When this returns, nothing of it comes late:
        libvirt waits for 30 s at most. It lets the guest go on itself when the migration fails.
        """
        await self._call("stop", "suspend", deadline_seconds=STOP_SECONDS)

    async def resume(self) -> None:
        """Let a paused guest go on."""
        await self._call("resume", "resume")

    async def set_vcpus(self, count: int) -> None:
        """Have it see so many virtual CPUs, of those that its description has. WrongState when it is not running."""
        await self._call("plug CPUs into", "setVcpusFlags", count, libvirt.VIR_DOMAIN_AFFECT_LIVE)

    async def set_memory(self, requested_bytes: int) -> None:
        """Ask it to have so much memory beside what it began with; it takes that, or gives it back, as it can."""

        def ask(domain: Any) -> None:
            device = requesting(domain.XMLDesc(0), requested_bytes)
            domain.updateDeviceFlags(device, libvirt.VIR_DOMAIN_AFFECT_LIVE)

        await self._do(f"give memory to domain {self.name}", ask, deadline_seconds=self._deadline)

    async def reset(self) -> None:
        """Press the reset button: the guest is not asked. WrongState when it is not running."""
        await self._call("reset", "reset", 0)

    async def reboot(self) -> None:
        """Press the power button, and have the guest boot again when it has shut down. It may ignore it. WrongState."""
        await self._call("reboot", "reboot", libvirt.VIR_DOMAIN_REBOOT_ACPI_POWER_BTN)

    async def state(self) -> State:
        """Ask what it does."""
        number, reason, *_unused = await self._call("ask the state of", "state")
        return read_state(number, reason)

    async def described(self, read: Callable[[str], Result], *, migratable: bool = False) -> Result:
        """Read the live description (the defined one when it is off), without secrets.

        read: in the call's thread, at the expense of the connection's share. What it raises is raised. migratable: as
        another libvirtd takes it.
        """
        doing = f"describe domain {self.name}"
        flags = libvirt.VIR_DOMAIN_XML_MIGRATABLE if migratable else 0
        found: Result = await self._do(
            doing, lambda domain: read(domain.XMLDesc(flags)), deadline_seconds=self._deadline
        )
        return found

    async def abort_job(self) -> None:
        """Give up the migration that is under way. WrongState: there is none."""
        await self._call("give up the migration of", "abortJob", deadline_seconds=ABORT_SECONDS)

    async def progress(self) -> Progress:
        """Say how far the migration is that is under way; of none everything is 0."""
        doing = f"ask for the progress of domain {self.name}"
        told = await self._do(doing, lambda domain: domain.jobStats(), deadline_seconds=self._deadline)
        return read_progress(told)

    async def sent(
        self, target: Any, parameters: Mapping[str, object], flags: int, *, wire: Wire, deadline_seconds: float
    ) -> Any:
        """Send it to another libvirtd (a connection of the binding, on a wire); return the binding's domain there."""

        def send(domain: Any) -> Any:
            with wire.at_work():
                return domain.migrate3(target, dict(parameters), flags)

        return await self._do(f"migrate domain {self.name}", send, deadline_seconds=deadline_seconds)

    def cut(self) -> None:
        """End the connection by which it is known, and with it what is under way there. The guest does not notice."""
        self._wire.cut("it does not end what was given up")

    async def ask_agent(self, command: str, seconds: int) -> str:
        """Put a command (JSON, one line) to the guest's agent, and return its answer: the guest's words, not yet read.

        seconds: how long the agent has; an agent that was silent before gets 5 s more. AgentSilent: there is none, or
        it does not answer, while libvirtd is fine. AnswerTooLong: more than ANSWER_LIMIT characters. HypervisorError:
        the agent refuses the command. An asker that is cancelled leaves a question under way:
        whoever bounds what is outstanding counts it until it has ended.
        """
        doing = f"ask the agent of domain {self.name}"
        deadline = self._deadline + _OTHERS_SECONDS + seconds
        with self._wire.intake.widened(ANSWER_BYTES):
            answer: str = await self._do(
                doing, lambda domain: _put_to_agent(domain, command, seconds), deadline_seconds=deadline
            )
        if len(answer) > ANSWER_LIMIT:
            said = f"its answer has {len(answer)} characters, at most {ANSWER_LIMIT} are read"
            raise AnswerTooLong(f"cannot {doing}: {said}")
        return answer

    def let_go(self) -> None:
        """Drop libvirt's domain, which keeps its connection open; for the thread that closes that."""
        self._domain = None

    async def _call(self, verb: str, method: str, *arguments: Any, deadline_seconds: float | None = None) -> Any:
        """Call a method of the domain: by name, for the frames of whoever fails must not hold it (see let_go)."""
        deadline = self._deadline if deadline_seconds is None else deadline_seconds
        doing = f"{verb} domain {self.name}"
        return await self._do(doing, lambda domain: getattr(domain, method)(*arguments), deadline_seconds=deadline)

    async def _do(self, doing: str, ask: Callable[[Any], Any], *, deadline_seconds: float) -> Any:
        def ask_if_open() -> Any:
            domain = self._domain
            if domain is None:
                raise Disconnected(f"cannot {doing}: the connection is closed")
            return ask(domain)

        return await call(doing, ask_if_open, deadline_seconds=deadline_seconds, wire=self._wire)


def _put_to_agent(domain: Any, command: str, seconds: int) -> Any:
    import libvirt_qemu  # noqa: PLC0415 - most launchers ask no agent  # pylint: disable=import-outside-toplevel

    return libvirt_qemu.qemuAgentCommand(domain, command, seconds, 0)


def read_progress(told: Mapping[str, object]) -> Progress:
    """Read what libvirt says of a job. Whatever is no number counts as none: the other side may be a tenant's."""

    def number(name: str) -> int:
        found = told.get(name)
        return max(0, found) if isinstance(found, int) else 0

    return Progress(
        total=number("data_total"),
        remaining=number("data_remaining"),
        sent=number("data_processed"),
        dirtied_per_second=number("memory_dirty_rate") * number("memory_page_size"),
        memory_per_second=number("memory_bps"),
    )


def read_state(number: int, reason: int) -> State:
    """Translate libvirt's two numbers, by name."""
    lives = {getattr(libvirt, f"VIR_DOMAIN_{word}", None): life for word, life in _LIVES.items()}
    life = lives.get(number, Life.UNKNOWN)
    prefix = _REASONS.get(life, "")
    for word in _REASON_WORDS.get(prefix, "").split():
        if getattr(libvirt, f"VIR_DOMAIN_{prefix}_{word}", None) == reason:
            return State(life, word.lower())
    return State(life, "unknown")
