# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What touches a node: a launcher's directory is a tenant's, and a hung launcher is nobody else's problem."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_REGISTRY = "controlplane/virt_handler/launchers/registry.py"
_CALLS = "controlplane/hypervisor/calls.py"
_CONNECTION = "controlplane/hypervisor/connection.py"
_EVENTS = "controlplane/hypervisor/events.py"
_GUEST = "controlplane/hypervisor/guest.py"
_BY_REGISTRY = ("tests/controlplane/virt_handler/launchers/test_registry.py",)
_BY_HYPERVISOR = ("tests/controlplane/hypervisor",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_REGISTRY,
        line="        return self._is_following and self._pods.synced",
        without="        return self._is_following",
        because="While not all Pods are listed, none may be taken for lost.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        return self._is_following and self._pods.synced",
        without="        return self._pods.synced",
        because="Before the sessions are begun, none may be taken for lost.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_REGISTRY,
        line="        except NodeError as error:\n            raise CannotLook(",
        without=(
            "        except NodeError as error:\n"
            "            return Traces(has_directory=False, processes=0)\n"
            "            raise CannotLook("
        ),
        because="A node that cannot be looked at has not been seen to be clean.",
        tests=_BY_REGISTRY,
    ),
    Guard(
        file=_CALLS,
        line="        async with asyncio.timeout(deadline_seconds):",
        without="        if True:",
        because="A hung libvirtd must not hold its caller for ever.",
        tests=_BY_HYPERVISOR,
        may_hang=True,
    ),
    Guard(
        file=_EVENTS,
        line="        if self._queue.full():\n            self._queue.get_nowait()\n",
        without="",
        because="A flood of events must not fill the memory, nor break its reader.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_CONNECTION,
        line='    if not path.startswith("/") or set(path) & set("?#&%; ") or not path.isprintable():',
        without='    if not path.startswith("/"):',
        because="A path must not become another URI.",
        tests=_BY_HYPERVISOR,
    ),
    Guard(
        file=_GUEST,
        line='    return State(life, "unknown")',
        without='    return State(life, "shutdown")',
        because="A reason that nobody knows must not be taken for an orderly end.",
        tests=_BY_HYPERVISOR,
    ),
)
