# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool's controller: never more than wanted, nobody else's, and no more restarted than may be not ready."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_POOL = "controlplane/virt_controller/pool/"
_TESTS = "tests/controlplane/virt_controller/pool/"
_BY_DECIDE = (f"{_TESTS}test_decide.py",)
_BY_RECONCILER = (f"{_TESTS}test_reconciler.py",)
_BY_CHANCE = (f"{_TESTS}test_never_more.py",)
_BY_ADMISSION = ("tests/controlplane/api/admission/kinds/test_pool.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=f"{_POOL}decide.py",
        line="    if world.is_deleting or world.problems:\n        return Plan()\n",
        without="",
        because="A pool that is deleted would make its machines anew, against the garbage collector.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    if world.missing and not world.is_past_known:\n",
        without="    if False:\n",
        because="A new leader would make machines in place of those that it has not seen yet.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    if not world.is_current:\n",
        without="    if False:\n",
        because="Machines that are wanted again would be deleted on an old word.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    if len(world.unmade) > world.missing and unsure:\n",
        without="    if False:\n",
        because="One that exists unseen would be one too many.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="surplus = len(world.staying) - world.pool.spec.replicas",
        without="surplus = len(world.counted) - world.pool.spec.replicas",
        because="Who is going would be counted once more, and another one deleted for it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    budget = max(0, most - _unavailable(world))\n",
        without="    budget = most\n",
        because="A change of the template would stop all machines, round by round.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    budget = max(0, most - _unavailable(world))\n",
        without="    budget = most - _unavailable(world)\n",
        because="A budget below zero would restart all who are ready but the last few.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="    return max(0, world.missing) + sum(",
        without="    return world.missing + sum(",
        because="Machines that are too many would make up for those that are not ready, and more would be stopped.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}decide.py",
        line="run is not None and one.is_kept_running and run.made_of",
        without="run is not None and run.made_of",
        because="A machine that nobody starts again would be stopped.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}world.py",
        line="return one.is_deleting or one.metadata.uid in self.deletes_sent",
        without="return one.is_deleting",
        because="Until its deletion is seen, another one would be deleted in its place.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}revision.py",
        line="return bool(before and after) and before != after",
        without="return before != after",
        because="What does not say what it was made from would be deleted with its disks.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}machine.py",
        line="    new = keep_identity(wanted, old)\n",
        without="    new = wanted\n",
        because="A guest would wake up as another machine.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}order.py",
        line="hashlib.sha256(one.metadata.uid.encode()).digest()",
        without="__import__('os').urandom(8)",
        because="Two leaders would choose different machines, and delete both.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_POOL}reconciler.py",
        line="(VIRTUAL_MACHINE_INSTANCE, key, uid=meta.uid, resource_version=version)",
        without="(VIRTUAL_MACHINE_INSTANCE, key, uid=meta.uid)",
        because="Those that get ready at the moment would be restarted at once, however few may be not ready.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_POOL}member.py",
        line=", member.is_kept_running, member.made_of)\n",
        without=", member.is_kept_running)\n",
        because="A machine that has got another template would run from the former one until something else happens.",
        tests=("tests/controlplane/virt_controller/test_wake.py",),
    ),
    Guard(
        file=f"{_POOL}reconciler.py",
        line="            await self._api.get(VIRTUAL_MACHINE, key)\n            raise Conflict",
        without="            raise Conflict",
        because="A name that another has would be tried for ever.",
        tests=(*_BY_RECONCILER, *_BY_CHANCE),
    ),
    Guard(
        file="controlplane/api/admission/kinds/pool.py",
        line='    fixed={"selector": SELECTOR_IS_FIXED},\n',
        without="",
        because="A slip of the selector would let all machines of a pool go, and make as many beside them.",
        tests=_BY_ADMISSION,
    ),
    Guard(
        file="controlplane/api/admission/kinds/pool.py",
        line='    yield from check_machine(machine.template.spec, configuration, f"{inside}.spec")\n',
        without="",
        because="Machines that virt-controller makes pass no webhook: this is the only place where they are judged.",
        tests=_BY_ADMISSION,
    ),
)
