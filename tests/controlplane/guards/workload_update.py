# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workload updates: nobody is moved or stopped who is not to be, or more often, or sooner than is said."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_UPDATES = "controlplane/virt_controller/workload_update/"
_TESTS = "tests/controlplane/virt_controller/workload_update/"
_BY_DECIDE = (f"{_TESTS}test_decide.py",)
_BY_RECONCILER = (f"{_TESTS}test_reconciler.py",)
_BY_MACHINE = (f"{_TESTS}test_machine.py",)
_BY_ROLL_OUT = (f"{_TESTS}test_roll_out.py",)
_EVICT = "controlplane/kube/eviction.py"
_BY_EVICT = ("tests/controlplane/kube/test_eviction.py",)
_BY_SERIES = ("tests/controlplane/virt_controller/migration/test_series.py",)
_BY_MEMORY = ("tests/controlplane/virt_controller/workload_update/test_memory.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/migration/create_once.py",
        line='        if there["spec"].get("vmiName") != vmi.name:\n',
        without="        if False:\n",
        because="Who takes the name of a machine's next migration would have it wait without a word.",
        tests=(*_BY_RECONCILER, "tests/controlplane/virt_controller/evacuation/test_reconciler.py"),
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line="        except (Conflict, NotFound):\n",
        without="        except ZeroDivisionError:\n",
        because="One machine that is written all the time would keep all others from being moved, evicted and counted.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line="        self._unfinished.note_created(key)\n",
        without="",
        because="More would be made at once than may be under way: the watch tells of each only later.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="    if LIVE_MIGRATE in world.strategy.workload_update_methods and not world.awaited:\n",
        without="    if not world.awaited:\n",
        because="Machines would be moved that nobody asked to move.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="workload_update_methods and not world.awaited:",
        without="workload_update_methods:",
        because="Migrations begin into virt-handlers that are about to be replaced, which ends them.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="    if EVICT not in methods or world.awaited:\n",
        without="    if world.awaited:\n",
        because="Guests would be stopped that nobody asked to stop.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="        is_moved = LIVE_MIGRATE in methods and one.machine.is_migratable\n",
        without="        is_moved = False\n",
        because="A guest that could move would be stopped.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="        if _is_due(one) and one.machine.is_outdated and not is_moved:\n",
        without="        if _is_due(one) and not is_moved:\n",
        because="A guest would be stopped for what only a move is good for.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="    if world.next_batch_in > 0:\n        return []\n",
        without="",
        because="All guests that cannot move would be stopped at once.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="        if len(found) >= free:\n            break\n",
        without="",
        because="People's own migrations would wait behind those of all machines.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="is_free = one.is_served and not",
        without="is_free = not",
        because="A guest would be moved, or stopped, where nobody of this control plane sees to it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="not one.is_moving and not one.is_evicted",
        without="not one.is_moving",
        because="A guest that goes would be asked to go again in each batch, and others wait.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}decide.py",
        line="    if kubevirt.metadata.deletion_timestamp is not None or kubevirt.status.phase != DEPLOYED:\n",
        without="    if kubevirt.status.phase != DEPLOYED:\n",
        because="Machines would be moved under a control plane that is being removed.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}world.py",
        line="            and (not self.reason or",
        without="            and (True or",
        because="The migration that a machine waits for would be taken away again.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}world.py",
        line="one.metadata.annotations.get(WORKLOAD_UPDATE_REASON, self.reason) != self.reason)",
        without="False)",
        because="A Pod that no node has room for would keep a guest waiting that is to have less by now.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}world.py",
        line="_NOT_BEGUN = (UNSET, PENDING, SCHEDULING)\n",
        without="_NOT_BEGUN = (UNSET, PENDING)\n",
        because="What was taken back would be in the way until the time of a Pod without a node is over.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}world.py",
        line="        interval = max(SHORTEST_INTERVAL, USUAL_INTERVAL if found is None else found)\n",
        without="        interval = USUAL_INTERVAL if found is None else found\n",
        because="An interval of nothing would stop all guests without a pause.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file="controlplane/virt_controller/migration/series.py",
        line="    return 0.0 if since < -pause else min(pause, max(0.0, pause - since))\n",
        without="    return min(pause, max(0.0, pause - since))\n",
        because="A clock that went wrong once would end evictions for as long as it was ahead.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=f"{_UPDATES}machine.py",
        line="is_outdated=bool(image) and image != launcher_image and",
        without="is_outdated=image != launcher_image and",
        because="A guest that begins, and whose launcher is not known yet, would count as one of an older launcher.",
        tests=_BY_MACHINE,
    ),
    Guard(
        file=f"{_UPDATES}machine.py",
        line='pod=next(iter(status.active_pods)) if len(status.active_pods) == 1 else "",',
        without='pod=next(iter(status.active_pods), ""),',
        because="Of two Pods nobody knows which has the guest: one would be ended by chance.",
        tests=_BY_MACHINE,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line="        self._memory.note_evicted(machine.uid, pod.uid)\n",
        without="",
        because="A guest that takes long to shut down would be evicted in each batch, and others wait.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line="        except REFUSED as error:\n",
        without="        except Conflict as error:\n",
        because="One machine whose quota or budget says no would hold up all others.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line="        if not all(one.synced for one in self._caches):\n",
        without="        if False:\n",
        because="A migration that is not known yet would be made a second time.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}roll_out.py",
        line='meta.annotations.get(CONTROL_PLANE_IMAGE, "") != self._image:',
        without="meta.annotations.get(CONTROL_PLANE_IMAGE, self._image) != self._image:",
        because="A virt-handler of before would count as rolled out.",
        tests=_BY_ROLL_OUT,
    ),
    Guard(
        file=f"{_UPDATES}roll_out.py",
        line="for name, takes_machines in self._others.items() if takes_machines))",
        without="for name in self._others))",
        because="One node that is off would hold up all updates for ever.",
        tests=_BY_ROLL_OUT,
    ),
    Guard(
        file="controlplane/virt_handler/__main__.py",
        line="            CONTROL_PLANE_IMAGE: settings.image,\n",
        without="",
        because="No node would ever be rolled out, and no machine be updated.",
        tests=("tests/controlplane/virt_handler/test_process.py",),
    ),
    Guard(
        file=_EVICT,
        line="    client.guard()\n",
        without="",
        because="A process that leads no more would stop guests beside the one that does.",
        tests=_BY_EVICT,
    ),
    Guard(
        file=_EVICT,
        line='        "deleteOptions": {"preconditions": {"uid": uid}},\n',
        without="",
        because="The Pod of another run, of the same name, would be ended.",
        tests=_BY_EVICT,
    ),
    Guard(
        file="controlplane/virt_controller/process.py",
        line="lambda: float(self._concerned.outdated if is_leader() else 0),",
        without="lambda: float(self._concerned.outdated),",
        because="Who adds up what the replicas say would count each machine twice.",
        tests=("tests/controlplane/virt_controller/test_process.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration/series.py",
        line="key=self._number_of, reverse=True)\n",
        without="key=self._number_of)\n",
        because="A first failure of weeks ago would count for the last one, and what failed since for nothing.",
        tests=_BY_SERIES,
    ),
    Guard(
        file="controlplane/virt_controller/migration/series.py",
        line="        return list(takewhile(lambda one: one.status.phase == FAILED, newest_first))\n",
        without="        return [one for one in newest_first if one.status.phase == FAILED]\n",
        because="Failures before one that succeeded would have the next one wait for ever longer.",
        tests=_BY_SERIES,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line='            subresource="status",\n            resource_version=meta.resource_version,\n',
        without='            subresource="status",\n',
        because="Machines would be stopped by a strategy that was taken back.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line=" if not one.is_waiting or one.can_begin]\n",
        without="]\n",
        because="Migrations of machines that are off would keep all from being updated.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}reconciler.py",
        line=" or key != min(self._kubevirts.keys(), key=str):\n",
        without=":\n",
        because="Two strategies would be followed, and twice as many be stopped as either says.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=f"{_UPDATES}memory.py",
        line="            self._known[uid].refusals = 0\n",
        without="            pass\n",
        because="One that was refused now and then would be tried ever later.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=f"{_UPDATES}memory.py",
        line="{uid: known for uid, known in self._known.items() if uid in uids}\n",
        without="dict(self._known)\n",
        because="Every machine that there ever was would be remembered.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=f"{_UPDATES}roll_out.py",
        line='            self._others[name] = meta.labels.get(SCHEDULABLE) == "true"\n',
        without='            self._others[name] = meta.labels.get(SCHEDULABLE) != "false"\n',
        because="A node that never had a virt-handler would keep all machines from being updated.",
        tests=_BY_ROLL_OUT,
    ),
    Guard(
        file="controlplane/virt_controller/workload_update/reconciler.py",
        line="        machines = self._machines(ours)\n",
        without="        machines = self._concerned()\n",
        because="A migration for a change that was taken back would wait on, and move the machine for nothing.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/workload_update/reconciler.py",
        line="annotations and bool(migration.spec.priority)\n",
        without="annotations\n",
        because="A tenant who has migrations waiting all the time would keep every machine in an old launcher.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/workload_update/concerned.py",
        line="        pods.subscribe(self._pod_changed)\n",
        without="",
        because="A new leader would move machines whose Pods it did not know yet.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/migration/series.py",
        line="if self.annotation in one.metadata.annotations and self._number_of(one)]",
        without="if self.annotation in one.metadata.annotations]",
        because="A machine would wait for what failed with one of its name that is gone.",
        tests=_BY_SERIES,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line='    if new.node_name not in ("", new.evacuation_node_name):',
        without="    if False:",
        because="A mark that came late would keep a machine from ever being brought to a new launcher.",
        tests=("tests/controlplane/virt_controller/vmi/test_status.py",),
    ),
)
