# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that comes back: what is no longer its own ends first, and only by the API server's word."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CLEARING = "controlplane/virt_handler/clearing.py"
_BY_CLEARING = ("tests/controlplane/virt_handler/test_clearing.py",)
_ORPHANS = "controlplane/virt_handler/vmi/orphans.py"
_BY_ORPHANS = ("tests/controlplane/virt_handler/vmi/test_orphans.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_ORPHANS,
        line=' or seen.launcher.doing != "")',
        without=")",
        because="A start that was under way when the node was cut off comes to its end beside the next instance.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line="    if world.held:  # its end wakes all, as that of a verb does\n",
        without="    if not vmi:\n",
        because="A node starts a machine beside a guest that is no longer its own.",
        tests=(
            "tests/controlplane/virt_handler/vmi/test_decide.py",
            "tests/controlplane/virt_handler/test_story_return.py",
        ),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/reconciler.py",
        line='        if held := self._held():\n            raise NoContact(f"the start has to wait: {held}")\n',
        without="",
        because="A start that was under way when the node was cut off goes on before anything is cleared.",
        tests=("tests/controlplane/virt_handler/vmi/test_reconciler.py",),
    ),
    Guard(
        file="controlplane/virt_handler/listed.py",
        line="return held_back(patch) if held else patch",
        without="return patch",
        because="Machines are sent to a node that is not clear of what is no longer its own.",
        tests=("tests/controlplane/virt_handler/test_listed.py",),
    ),
    Guard(
        file=_CLEARING,
        line="        if self._asked_at is None or self._heard.silences != self._silences:\n            return True\n",
        without="        if self._asked_at is None:\n            return True\n",
        because="A silence that nobody saw (a host that was suspended) is forgotten by the renewal that ends it.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="        return self._silent_in() <= 0\n",
        without="        return False\n",
        because="After a silence a watch is quicker than the Lease, and a machine starts before anything is cleared.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line='"error": str(error)})\n                return False\n            if because:\n',
        without='"error": str(error)})\n                because = "nobody answers"\n            if because:\n',
        because="A guest is ended because the API server could not be reached.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line='            log.warning("a VMI cannot be read", extra={**_who(launcher), "error": str(error)})\n'
        '            return ""\n',
        without="            return why_orphan(launcher, None)\n",
        because="A guest is ended because its VMI cannot be read by this version.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="if now - self._since[one.pod_uid] < DEADLINE_SECONDS]:",
        without="if self._since]:",
        because="A guest that hangs keeps its node from starting machines for ever.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_CLEARING,
        line="{one.pod_uid: self._since.get(one.pod_uid, now) for one in found}",
        without="{one.pod_uid: now for one in found}",
        because="A guest that hangs has its node held anew by every silence.",
        tests=_BY_CLEARING,
    ),
    Guard(
        file=_ORPHANS,
        line="    if vmi is None or vmi.metadata.uid != owner.uid:\n",
        without="    if vmi is None:\n",
        because="The guest of a former VMI runs on under the name of its successor.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="if granted and uid not in granted else",
        without="if uid not in granted else",
        because="A launcher that waits for its hand-over is taken for another's.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="seen.traces is not None and seen.traces.emulators == 0 and not may_be_up",
        without="not may_be_up",
        because="What cannot be reached is taken for down, and a machine starts beside it.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file=_ORPHANS,
        line="seen.traces is not None and seen.traces.emulators == 0 and not may_be_up",
        without="seen.traces is not None and seen.traces.emulators == 0",
        because="A QEMU that hides its name is taken for down while libvirt says that it runs.",
        tests=_BY_ORPHANS,
    ),
    Guard(
        file="controlplane/kube/lease.py",
        line="            self.silences += 1\n",
        without="",
        because="A node does not notice that it was away for longer than its Lease.",
        tests=("tests/controlplane/kube/test_lease.py",),
    ),
)
