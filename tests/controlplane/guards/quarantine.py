# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are left out for a while: never by one tenant, never too many, never twice, never against a person."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/quarantine/decide.py"
_CHARGES = "controlplane/virt_controller/quarantine/charges.py"
_RECONCILER = "controlplane/virt_controller/quarantine/reconciler.py"
_POD = "controlplane/virt_controller/vmi/launcher_pod.py"
_BY_DECIDE = ("tests/controlplane/virt_controller/quarantine/test_decide.py",)
_BY_CHARGES = ("tests/controlplane/virt_controller/quarantine/test_charges.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/quarantine/test_reconciler.py",)
_BY_VMI = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_DECIDE,
        line="        return Plan(look_again_in=SETTLE_SECONDS - world.leading_for)\n",
        without="        pass\n",
        because="A write that the last leader has sent may still come, and another node would be marked beside it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    return staying if len(staying) * 2 >= len(fit) else None",
        without="    return staying",
        because="Whatever makes runs fail everywhere would leave no node.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="min(until - world.now, world.seconds - one.marked_for)",
        without="until - world.now",
        because="A leader whose clock is behind would keep a mark for as long as that.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_CHARGES,
        line="        if new.status.phase != RUNNING or",
        without="        if",
        because="Runs that fail everywhere would count against each node that they were on.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_DECIDE,
        line="if each.mark is None and each.name != one.name)",
        without="if each.name != one.name)",
        because="Nodes that are marked already would be counted on.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    return None if until is None else min(",
        without="    return world.seconds - one.marked_for if until is None else min(",
        because="What a person has marked would be let go.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=" and len(namespaces) >= min(NAMESPACES, max(world.namespaces, 1))",
        without="",
        because="A tenant alone could take nodes out.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    return len(_machines(charges)) >= MACHINES and",
        without="    return len(charges) >= MACHINES and",
        because="One machine alone, made again and again, would take a node out.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="if world.monotonic - each.at < WINDOW_SECONDS)",
        without="if each)",
        because="What was long ago would count.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="if one.mark is None and one.is_fit)",
        without="if one.is_fit)",
        because="A node would be marked twice, and a person's word overwritten.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_CHARGES,
        line="        self.forget(new.status.node_name)\n",
        without="",
        because="A node on which guests come up would be taken out.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_CHARGES,
        line="or _decoder.decode(before).status.phase != SCHEDULED:",
        without="or False:",
        because="An instance that is written a hundred times while it runs would count a hundred times.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_CHARGES,
        line="            if one.node_fault and one.node_name and",
        without="            if one.node_name and",
        because="What a tenant can bring about would count against nodes.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_CHARGES,
        line=" and one.node_name != new.status.node_name:",
        without=":",
        because="A node on which the run has come up in the end would be charged with it.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_CHARGES,
        line="deque(maxlen=MOST_CHARGES)",
        without="deque()",
        because="What is kept of a node that nobody judges would grow for ever.",
        tests=_BY_CHARGES,
    ),
    Guard(
        file=_RECONCILER,
        line="        await self._confirm(action)\n",
        without="",
        because="Two leaders would mark two nodes where one may be.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            if mark_of(found) is not None or not",
        without="            if not",
        because="Two leaders would mark two nodes where one may be.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="uid=meta.uid, resource_version=version)",
        without="uid=meta.uid)",
        because="What a person has written since would be overwritten.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            self._charges.forget(key.name)  # it was judged, or a person has looked at it\n",
        without="",
        because="A node that a person has let go would be marked again at once.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="or self._leading_since is None:",
        without="or False:",
        because="Who does not lead would judge nodes.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_POD,
        line="kept_from=kept_from)\n    optional",
        without="kept_from=())\n    optional",
        because="Machines would be sent to quarantined nodes.",
        tests=_BY_VMI,
    ),
    Guard(
        file="controlplane/virt_controller/quarantine/world.py",
        line=" and not self.node.is_out_of_service",
        without="",
        because="A node that a person says is off would count as one of those that stay.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_RECONCILER,
        line='        if self._marked.get(name, ("", 0.0))[0] != mark:',
        without="        if name not in self._marked:",
        because="A mark that somebody has exchanged for a longer one would end by the time of the former.",
        tests=_BY_RECONCILER,
    ),
)
