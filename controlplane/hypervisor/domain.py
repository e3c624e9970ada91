# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One libvirt domain: its verbs, its state, and requests to its guest's agent. No policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import libvirt

from controlplane.domain.state import Life, State
from controlplane.domain.statistics import Statistics, read_statistics
from controlplane.hypervisor import screenshot
from controlplane.hypervisor.calls import DEADLINE_SECONDS, call
from controlplane.hypervisor.errors import Disconnected, ResponseTooLong
from controlplane.hypervisor.memory_device import with_requested
from controlplane.hypervisor.progress import Progress, read_progress
from controlplane.hypervisor.receive_quota import RESPONSE_BYTES
from controlplane.hypervisor.transport import Transport

Result = TypeVar("Result")

START_SECONDS = 60.0
"""A start takes 0.4 s here, and up to 3 s per GiB where memory is locked or allocated at once."""
RESPONSE_LIMIT = 64 << 10
"""Characters of an agent's response that are accepted. libvirtd accepts 10 MiB of an agent, our client 4 MiB of
libvirtd."""
ABORT_SECONDS = 30.0
STOP_SECONDS = 45.0
_LIBVIRT_WAIT_SECONDS = 35.0
"""What libvirt adds to a request's timeout: 30 s for a running request to end, 5 s for the agent to synchronize."""

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


class Domain:
    """A domain that libvirt knows. Every method raises HypervisorError; NoSuchDomain when libvirt has it no longer."""

    def __init__(
        self, domain: Any, name: str, transport: Transport | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        """name: as we looked it up, not as the peer reports it. deadline_seconds: of verbs without one of their own."""
        self._domain = domain
        self.name = name
        self._transport = Transport() if transport is None else transport
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
        """Pause the guest. A guest that is paused already keeps its reason."""
        await self._call("pause", "suspend")

    async def stop_to_send(self) -> None:
        """Pause the guest for the migration that is running. libvirt resumes it when the migration fails.

        The deadline is longer than libvirt's own of 30 s, so the pause cannot take effect after this call.
        """
        await self._call("stop", "suspend", deadline_seconds=STOP_SECONDS)

    async def resume(self) -> None:
        """Resume a paused guest."""
        await self._call("resume", "resume")

    async def set_vcpus(self, count: int) -> None:
        """Set the number of virtual CPUs, up to the maximum in its XML. WrongState when it is not running."""
        await self._call("plug CPUs into", "setVcpusFlags", count, libvirt.VIR_DOMAIN_AFFECT_LIVE)

    async def set_memory(self, requested_bytes: int) -> None:
        """Request this much memory beyond the initial size. The guest plugs or unplugs it as it can."""

        def ask(domain: Any) -> None:
            device = with_requested(domain.XMLDesc(0), requested_bytes)
            domain.updateDeviceFlags(device, libvirt.VIR_DOMAIN_AFFECT_LIVE)

        await self._do(f"give memory to domain {self.name}", ask, deadline_seconds=self._deadline)

    async def reset(self) -> None:
        """Reset the guest without its cooperation. WrongState when it is not running."""
        await self._call("reset", "reset", 0)

    async def reboot(self) -> None:
        """Press the power button, and boot again after the shutdown. The guest may ignore it. WrongState."""
        await self._call("reboot", "reboot", libvirt.VIR_DOMAIN_REBOOT_ACPI_POWER_BTN)

    async def state(self) -> State:
        """Read the domain's state."""
        number, reason, *_unused = await self._call("ask the state of", "state")
        return read_state(number, reason)

    async def described(self, read: Callable[[str], Result], *, migratable: bool = False) -> Result:
        """Parse the live XML (the defined one when the domain is off), without secrets.

        read: parses it, in the call's thread, charged to the connection's quota. What it raises is raised here.
        migratable: the form for another libvirtd.
        """
        doing = f"read the XML of domain {self.name}"
        flags = libvirt.VIR_DOMAIN_XML_MIGRATABLE if migratable else 0
        result: Result = await self._do(
            doing, lambda domain: read(domain.XMLDesc(flags)), deadline_seconds=self._deadline
        )
        return result

    async def abort_job(self) -> None:
        """Abort the running migration. WrongState: there is none."""
        await self._call("abort the migration of", "abortJob", deadline_seconds=ABORT_SECONDS)

    async def progress(self) -> Progress:
        """Read the progress of the running migration; all zeros when there is none."""
        doing = f"read the migration progress of domain {self.name}"
        stats = await self._do(doing, lambda domain: domain.jobStats(), deadline_seconds=self._deadline)
        return read_progress(stats)

    async def screenshot(self) -> bytearray:
        """Take a picture of the first screen (PNG or PPM, untrusted and unparsed), also while the guest is paused.

        ResponseTooLong. WrongState when it is not running; HypervisorError when it has no graphics device. A
        cancelled call goes on, as in `ask_agent`.
        """
        doing = f"take a screenshot of domain {self.name}"
        with screenshot.quotas_extended(self._transport):
            picture: bytearray | None = await self._do(
                doing, lambda domain: screenshot.receive(domain, self._transport), deadline_seconds=self._deadline
            )
        if picture is None:
            raise ResponseTooLong(f"cannot {doing}: the picture has more than {screenshot.LIMIT_BYTES} bytes")
        return picture

    async def statistics(self) -> Statistics:
        """Read libvirt's counters of the guest, those that are known: the peer may be a tenant's.

        It does not wait for another call that QEMU carries out: then some counters are missing.
        """

        def ask(domain: Any) -> Statistics:
            flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
            found = domain.connect().domainListGetStats([domain], _statistics_groups(), flags)
            return read_statistics(found[0][1] if found else {})

        doing = f"read the statistics of domain {self.name}"
        result: Statistics = await self._do(doing, ask, deadline_seconds=self._deadline)
        return result

    async def sent(
        self,
        target: Any,
        parameters: Mapping[str, object],
        flags: int,
        *,
        transport: Transport,
        deadline_seconds: float,
    ) -> Any:
        """Migrate it; return the binding's domain at the target. target: the binding's connection, on that
        transport."""

        def send(domain: Any) -> Any:
            with transport.in_use():
                return domain.migrate3(target, dict(parameters), flags)

        return await self._do(f"migrate domain {self.name}", send, deadline_seconds=deadline_seconds)

    def cut(self) -> None:
        """End the connection, and with it all calls on it. This does not affect the guest."""
        self._transport.cut("it does not end a call that was aborted")

    async def ask_agent(self, command: str, seconds: int) -> str:
        """Send a command (JSON, one line) to the guest's agent; return the response, which is untrusted and unparsed.

        seconds: how long the agent has; an agent that was silent before gets 5 s more. AgentSilent: there is no agent,
        or it does not respond, while libvirtd works. ResponseTooLong: more than RESPONSE_LIMIT characters.
        HypervisorError: the agent refuses the command. A cancelled call leaves its request running: a limit on running
        requests must count it until it has ended.
        """
        doing = f"ask the agent of domain {self.name}"
        deadline = self._deadline + _LIBVIRT_WAIT_SECONDS + seconds
        with self._transport.receive_quota.extended(RESPONSE_BYTES):
            response: str = await self._do(
                doing, lambda domain: _send_to_agent(domain, command, seconds), deadline_seconds=deadline
            )
        if len(response) > RESPONSE_LIMIT:
            raise ResponseTooLong(
                f"cannot {doing}: its response has {len(response)} characters, at most {RESPONSE_LIMIT} are read"
            )
        return response

    async def set_time(self, now: Callable[[], float], seconds: int) -> None:
        """Set the guest's clock, through its agent. AgentSilent: there is no agent, or it does not respond.

        now: seconds since the epoch, read right before the request. seconds: how long the agent has. libvirt also tells
        QEMU's real-time clock to forget the ticks that the guest has missed, or they would be added to the new time.
        """

        def ask(domain: Any) -> None:
            domain.agentSetResponseTimeout(seconds, 0)  # otherwise libvirt waits for ever
            time = now()
            domain.setTime({"seconds": int(time), "nseconds": int(time % 1 * 1e9)}, 0)

        deadline = self._deadline + _LIBVIRT_WAIT_SECONDS + seconds
        await self._do(f"set the time of domain {self.name}", ask, deadline_seconds=deadline)

    def drop(self) -> None:
        """Drop libvirt's domain, which keeps its connection open. Called in the thread that closes the connection."""
        self._domain = None

    async def _call(self, verb: str, method: str, *arguments: Any, deadline_seconds: float | None = None) -> Any:
        """Call a method of the domain by name, so that no traceback holds the domain (see drop)."""
        deadline = self._deadline if deadline_seconds is None else deadline_seconds
        doing = f"{verb} domain {self.name}"
        return await self._do(doing, lambda domain: getattr(domain, method)(*arguments), deadline_seconds=deadline)

    async def _do(self, doing: str, ask: Callable[[Any], Any], *, deadline_seconds: float) -> Any:
        def ask_if_open() -> Any:
            domain = self._domain
            if domain is None:
                raise Disconnected(f"cannot {doing}: the connection is closed")
            return ask(domain)

        return await call(doing, ask_if_open, deadline_seconds=deadline_seconds, transport=self._transport)


def _send_to_agent(domain: Any, command: str, seconds: int) -> Any:
    import libvirt_qemu  # noqa: PLC0415 - most launchers ask no agent  # pylint: disable=import-outside-toplevel

    return libvirt_qemu.qemuAgentCommand(domain, command, seconds, 0)


def _statistics_groups() -> int:
    groups = ("CPU_TOTAL", "BALLOON", "VCPU", "INTERFACE", "BLOCK")
    return sum(getattr(libvirt, f"VIR_DOMAIN_STATS_{group}") for group in groups)


def read_state(number: int, reason: int) -> State:
    """Translate libvirt's state and reason, by the names of the constants."""
    lives = {getattr(libvirt, f"VIR_DOMAIN_{word}", None): life for word, life in _LIVES.items()}
    life = lives.get(number, Life.UNKNOWN)
    prefix = _REASONS.get(life, "")
    for word in _REASON_WORDS.get(prefix, "").split():
        if getattr(libvirt, f"VIR_DOMAIN_{prefix}_{word}", None) == reason:
            return State(life, word.lower())
    return State(life, "unknown")
