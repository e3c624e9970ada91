# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes take machines: silence is watched, never read off a stamp, and each writer has its own word."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/node/decide.py"
_SIGHTINGS = "controlplane/virt_controller/node/sightings.py"
_RECONCILER = "controlplane/virt_controller/node/reconciler.py"
_LISTED = "controlplane/virt_handler/listed.py"
_BY_DECIDE = ("tests/controlplane/virt_controller/node/test_decide.py",)
_BY_SIGHTINGS = ("tests/controlplane/virt_controller/node/test_sightings.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/node/test_reconciler.py",)
_BY_LISTED = ("tests/controlplane/virt_handler/test_listed.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/wake.py",
        line="    leases.subscribe(on_lease)\n",
        without="",
        because="A node whose Lease is to last five seconds now would be judged when the forty of before are over.",
        tests=("tests/controlplane/virt_controller/test_wake.py",),
    ),
    Guard(
        file="controlplane/virt_controller/wake.py",
        line="if node is not None and _lasts(before) != _lasts(after):",
        without="if node is not None:",
        because="A hundred nodes that renew their Leases would cost ten passes a second.",
        tests=("tests/controlplane/virt_controller/test_wake.py",),
    ),
    Guard(
        file="controlplane/virt_handler/node.py",
        line="    return CONTROL_PLANE in labels and kept\n",
        without="    return False\n",
        because="A tenant's toleration would put a guest beside virt-api and virt-controller.",
        tests=("tests/controlplane/virt_handler/test_node.py",),
    ),
    Guard(
        file=_LISTED,
        line='            log.warning("cannot label the node", extra={"node": name, "error": str(error)})\n'
        "            rest, pause = pause, min(pause * 2, LONGEST_RETRY_SECONDS)\n"
        "        await wait(",
        without='            log.warning("cannot label the node", extra={"node": name, "error": str(error)})\n'
        "            rest, pause = pause, min(pause * 2, LONGEST_RETRY_SECONDS)\n"
        "        heartbeat.resumed.clear()\n"
        "        await wait(",
        because="A node that becomes clear while its label is looked at would take no machines for another minute.",
        tests=_BY_LISTED,
    ),
    Guard(
        file=_DECIDE,
        line="    if left > 0:",
        without="    if False:",
        because="Before a whole duration was watched, nothing may be concluded.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not world.takes_machines:",
        without="    if False:",
        because="A node that takes no machines must not be written to again and again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="min(lease.spec.lease_duration_seconds, LONGEST_SECONDS)",
        without="lease.spec.lease_duration_seconds",
        because="Nobody keeps a dead node on the list by what they wrote into its Lease.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_SIGHTINGS,
        line="        if self._seen is None:\n            return 0.0\n",
        without="        self._seen = self._seen or {}\n",
        because="What a follower saw or missed is no silence that the leader watched.",
        tests=_BY_SIGHTINGS,
    ),
    Guard(
        file=_SIGHTINGS,
        line="        if known != renewal:\n            since",
        without="        if False:\n            since",
        because="A Lease that is renewed is not silent.",
        tests=_BY_SIGHTINGS,
    ),
    Guard(
        file=_RECONCILER,
        line="        await self._confirm(key, world.lease)\n",
        without="",
        because="A watch that stands still makes every Lease stand still.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        self._see(key.name, found)\n        if",
        without="        if",
        because="A renewal that the API server knows of must be noted, or it is asked again without a pause.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=", uid=meta.uid)\n        message",
        without=")\n        message",
        because="A node that was made anew under the name has not been silent.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_LISTED,
        line="    if is_needed(node, patch) and heartbeat.is_fresh:",
        without="    if heartbeat.is_fresh:",
        because="A Node is watched by everyone: it is written to when it says otherwise only.",
        tests=_BY_LISTED,
    ),
    Guard(
        file=_LISTED,
        line="    if is_needed(node, patch) and heartbeat.is_fresh:",
        without="    if is_needed(node, patch):",
        because="Who is silent for virt-controller must not put its node on the list: they would take turns for ever.",
        tests=_BY_LISTED,
    ),
    Guard(
        file="controlplane/kube/lease.py",
        line="        self.resumed.set()\n",
        without="",
        because="A node that is heard again must not wait a minute to take machines.",
        tests=("tests/controlplane/kube/test_lease.py",),
    ),
)
