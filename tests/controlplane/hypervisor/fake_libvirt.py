# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake libvirt binding with wrong numbers for all constants: code works with it only if it uses the names."""

from __future__ import annotations

import itertools
import types
from typing import Any

_NAMES = """
VIR_ERR_NO_DOMAIN VIR_ERR_XML_ERROR VIR_ERR_CONFIG_UNSUPPORTED VIR_ERR_OPERATION_INVALID VIR_ERR_AGENT_UNRESPONSIVE
VIR_ERR_OPERATION_TIMEOUT VIR_ERR_NO_CONNECT VIR_ERR_RPC VIR_ERR_SYSTEM_ERROR VIR_ERR_INTERNAL_ERROR
VIR_FROM_RPC VIR_FROM_QEMU
VIR_DOMAIN_NOSTATE VIR_DOMAIN_RUNNING VIR_DOMAIN_BLOCKED VIR_DOMAIN_PAUSED VIR_DOMAIN_SHUTDOWN VIR_DOMAIN_SHUTOFF
VIR_DOMAIN_CRASHED VIR_DOMAIN_PMSUSPENDED
VIR_DOMAIN_RUNNING_BOOTED VIR_DOMAIN_PAUSED_USER VIR_DOMAIN_PAUSED_IOERROR VIR_DOMAIN_PAUSED_POSTCOPY_FAILED
VIR_DOMAIN_SHUTDOWN_USER VIR_DOMAIN_SHUTOFF_SHUTDOWN VIR_DOMAIN_SHUTOFF_DESTROYED VIR_DOMAIN_SHUTOFF_CRASHED
VIR_DOMAIN_CRASHED_PANICKED
VIR_DOMAIN_EVENT_ID_LIFECYCLE VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE VIR_DOMAIN_EVENT_ID_IO_ERROR
VIR_DOMAIN_EVENT_ID_WATCHDOG VIR_DOMAIN_EVENT_WATCHDOG_RESET VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF
VIR_DOMAIN_EVENT_DEFINED VIR_DOMAIN_EVENT_STARTED VIR_DOMAIN_EVENT_STOPPED VIR_DOMAIN_EVENT_SHUTDOWN
VIR_DOMAIN_EVENT_CRASHED VIR_DOMAIN_EVENT_CRASHED_PANICKED VIR_DOMAIN_EVENT_CRASHED_CRASHLOADED
VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED
VIR_CONNECT_CLOSE_REASON_ERROR VIR_CONNECT_CLOSE_REASON_EOF VIR_CONNECT_CLOSE_REASON_KEEPALIVE
VIR_CONNECT_CLOSE_REASON_CLIENT
VIR_DOMAIN_START_PAUSED VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN VIR_DOMAIN_DESTROY_GRACEFUL
VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT VIR_DOMAIN_STATS_CPU_TOTAL VIR_DOMAIN_STATS_BALLOON VIR_DOMAIN_STATS_VCPU
VIR_DOMAIN_STATS_INTERFACE VIR_DOMAIN_STATS_BLOCK
"""


class libvirtError(Exception):  # noqa: N801 - the binding's name
    """Like the binding's: a text, a code, and the part of libvirt that raised it."""

    def __init__(self, text: str, code: int | None, domain: int | None = None) -> None:
        super().__init__(text)
        self._code, self._domain = code, domain

    def get_error_code(self) -> int | None:
        return self._code

    def get_error_domain(self) -> int | None:
        return self._domain


def make_module() -> Any:
    """Return a fresh module."""
    module: Any = types.ModuleType("libvirt")
    module.libvirtError = libvirtError
    for name, number in zip(_NAMES.split(), itertools.count(7001, 13), strict=False):
        setattr(module, name, number)
    module.registerErrorHandler = lambda handler, context: None
    return module


class Domain:
    """A domain that obeys every call and records the flags."""

    def __init__(self, binding: Any, name: str = "guest") -> None:
        self._binding, self._name = binding, name
        self.numbers: tuple[int, int] = (binding.VIR_DOMAIN_SHUTOFF, 0)
        self.flags: list[int] = []
        self.failure: libvirtError | None = None
        self.agent_calls: list[tuple[str, Any, int]] = []

        self.counters: dict[str, object] | None = None

    def name(self) -> str:
        return self._name

    def connect(self) -> Domain:
        return self

    def domainListGetStats(  # noqa: N802
        self, domains: list[Domain], groups: int, flags: int
    ) -> list[tuple[Domain, dict[str, object]]]:
        self._act(flags, self.numbers)
        return [] if self.counters is None else [(domains[0], self.counters)]

    def createWithFlags(self, flags: int) -> None:  # noqa: N802
        self._act(flags, (self._binding.VIR_DOMAIN_RUNNING, self._binding.VIR_DOMAIN_RUNNING_BOOTED))

    def shutdownFlags(self, flags: int) -> None:  # noqa: N802
        self._act(flags, (self._binding.VIR_DOMAIN_SHUTOFF, self._binding.VIR_DOMAIN_SHUTOFF_SHUTDOWN))

    def destroyFlags(self, flags: int) -> None:  # noqa: N802
        self._act(flags, (self._binding.VIR_DOMAIN_SHUTOFF, self._binding.VIR_DOMAIN_SHUTOFF_DESTROYED))

    def state(self) -> list[int]:
        self._act(0, self.numbers)
        return list(self.numbers)

    def agentSetResponseTimeout(self, timeout: int, flags: int) -> None:  # noqa: N802
        self.agent_calls.append(("timeout", timeout, flags))

    def setTime(self, time: dict[str, int], flags: int) -> None:  # noqa: N802
        self.agent_calls.append(("time", time, flags))

    def _act(self, flags: int, numbers: tuple[int, int]) -> None:
        if self.failure is not None:
            raise self.failure
        self.flags.append(flags)
        self.numbers = numbers


class Connection:
    """A connection with just the methods to subscribe to events."""

    def __init__(self) -> None:
        self.callbacks: dict[int, Any] = {}
        self.is_dead = False

    def domainEventRegisterAny(self, domain: Any, identifier: int, callback: Any, opaque: Any) -> int:  # noqa: N802
        self.callbacks[identifier] = callback
        return identifier

    def domainEventDeregisterAny(self, identifier: int) -> None:  # noqa: N802
        del self.callbacks[identifier]
        if self.is_dead:
            raise libvirtError("client socket is closed", 38)
