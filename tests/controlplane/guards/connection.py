# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What whoever reaches a port can cost the process behind it."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CONNECTION = "controlplane/connection.py"
_BY_CONNECTION = ("tests/controlplane/test_connection.py",)

GUARDS: tuple[Guard, ...] = (
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
