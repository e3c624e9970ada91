# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's agent: what it can cost, and how much of what it says there can be."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CALLS = "controlplane/hypervisor/calls.py"
_GUEST = "controlplane/hypervisor/guest.py"
_BY_HYPERVISOR = ("tests/controlplane/hypervisor/test_agent.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_CALLS,
        line="            work.end_by(until)\n",
        without="            pass\n",
        because="Each question whose asker went away would leave a thread, for as long as the launcher is silent.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_GUEST,
        line="        if len(answer) > ANSWER_LIMIT:",
        without="        if not answer:",
        because="An agent's answer of megabytes would be parsed, and hold up every other machine of the node.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_GUEST,
        line="        except NotText:\n",
        without="        except ZeroDivisionError:\n",
        because="An agent that answers in no text would end the session with its launcher.",
        tests=_BY_HYPERVISOR,
    ),
)
