# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What whoever reaches a port can cost the process behind it."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CONNECTION = "controlplane/connection.py"
_BY_LISTENER = ("tests/controlplane/test_listener.py",)
_BY_HOSTILE = ("tests/controlplane/hypervisor/test_hostile.py",)
_BY_CONNECTION = ("tests/controlplane/test_connection.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/hypervisor/loop.py",
        line="        if not wire.intake.take(self._meter.since(), now):",
        without="        if False:",
        because="Launchers that begin large events and never end them would take all of virt-handler's memory.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="        if not self._wire.intake.take(self._meter.since(), now):",
        without="        if False:",
        because="Launchers that begin large answers and never end them would take all of virt-handler's memory.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/intake.py",
        line="            self.left = min(self.left, before)",
        without="            self.left = min(self.left, self.most)",
        because="Each question to an agent would let a launcher send megabytes more.",
        tests=("tests/controlplane/hypervisor/test_intake.py",),
    ),
    Guard(
        file="controlplane/listener.py",
        line="        ended = next(iter(self._idle), None) or next(iter(self._handshakes), None)",
        without="        ended = next(iter(self._handshakes), None)",
        because="Sixty-five Pods that hold a connection each would keep the kubelet out, and have every process ended.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="        if peer in self._peers.values():\n            return False\n",
        without="",
        because="One address could end everybody's connections.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="        self._idle.pop(request.protocol, None)\n",
        without="",
        because="Who is just being answered would be cut off for somebody who has not asked.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="isinstance(handler, Connection) and not handler.is_proven:",
        without="isinstance(handler, Connection):",
        because="The API server's idle connections would make room for anybody's.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file=_CONNECTION,
        line="            if _IN_CHUNKS in looked_at.lower():",
        without="            if _IN_CHUNKS in looked_at:",
        because="Whoever writes the header in other letters has all of a processor for a megabyte a second.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="            looked_at = self._end_of_last + data",
        without="            looked_at = data",
        because="Whoever cuts the header in two has all of a processor for a megabyte a second.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="tls.getpeercert(binary_form=True) is not None",
        without="True",
        because="Everybody who can begin TLS is taken for somebody who has proved who it is.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="log.addFilter(_OwnFaults())",
        without="_OwnFaults()",
        because="Each request that is none is a traceback in the log, as often as its sender likes.",
        tests=_BY_CONNECTION,
    ),
)
