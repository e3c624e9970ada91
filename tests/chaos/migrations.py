# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations, each with a random fault at a random moment: no guest is lost or duplicated.

The actions follow from the seed. An observer reads the QEMU processes of both nodes and not the API (observer, motion);
the guest's counter, kept in its memory, shows that it is the same guest.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.journal import Journal
from tests.chaos.motion import Motion
from tests.chaos.observer import Observer
from tests.chaos.watch import watching
from tests.e2e.cluster import SIGNAL, VICTIMS, Cluster
from tests.e2e.console import NotYet
from tests.e2e.machines import a_vm

MACHINES = ("traveller", "wanderer")
LOOK_SECONDS = 0.15
AFTER_SECONDS = (0.0, 2.8)
"""From the request to the fault: covers every step of a migration, which takes 2 to 3 s."""
OVER_SECONDS, HEALED_SECONDS = 360.0, 270.0
QUICK = "--request-timeout=20s"

Say = Callable[[str], None]


@dataclass
class Journeys:
    """The migrations of the machines of one cluster."""

    cluster: Cluster
    dice: random.Random
    journal: Journal
    wrong: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    counters: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The VMI and the counter of its guest, by machine."""

    def begin(self) -> None:
        """Start the machines."""
        self.cluster.apply(*(a_vm(name) for name in MACHINES))
        for name in MACHINES:
            self.cluster.running(name)
            self.cluster.eventually(lambda name=name: self._count(name), what=f"{name} counts")
            self.counters[name] = self._count(name) or ("", 0)

    def travel(self) -> None:
        """Migrate one machine, with a fault in the middle; check the result."""
        name = self.dice.choice(MACHINES)
        vmi = self.cluster.get("vmi", name) or {}
        source = vmi.get("status", {}).get("nodeName", "")
        fault, ends = self._choose(vmi, source)
        after = self.dice.uniform(*AFTER_SECONDS)
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"generateName": f"{name}-", "namespace": "default"},
            "spec": {"vmiName": name},
        }
        self.journal.note(f"migrate {name} from {source}, {fault.__name__ if fault else 'nothing'} after {after:.2f} s")
        done = self.cluster.try_kubectl("create", "-f", "-", "-o", "name", QUICK, given=json.dumps(body))
        migration = done.stdout.strip().rpartition("/")[2]
        if not migration:
            self.journal.answer(done.stderr)
            return
        timer = threading.Timer(after, fault) if fault is not None else None
        if timer is not None:
            timer.start()
        is_over = self._is_over(name, migration)
        if timer is not None:
            timer.join()
        if is_over:
            self._see_what_came(name, migration, may_end=ends)

    def _is_over(self, name: str, migration: str) -> bool:
        """Wait until a migration has ended."""

        def phase() -> str:
            result = self.cluster.get("vmim", migration)
            reported = "gone" if result is None else result.get("status", {}).get("phase", "")
            return reported if reported in ("Succeeded", "Failed", "gone") else ""

        try:
            reported = self.cluster.eventually(phase, seconds=OVER_SECONDS, what=f"migration {migration} is over")
        except NotYet:
            self.wrong.append(f"migration {migration} of {name} is not over: {self.cluster.get('vmim', migration)}")
            return False
        self.outcomes[reported] += 1
        self.journal.answer(reported)
        return True

    def _see_what_came(self, name: str, migration: str, *, may_end: bool) -> None:
        """Check that the guest goes on counting after the fault: the same guest, unless the fault may end it.

        The console keeps old output after the end of a guest: the counter must be seen to grow.
        """
        last, first_seen = self.counters[name], dict[str, int]()

        def counts_on() -> bool:
            current = self._count(name)
            if current is None or (not may_end and (current[0] != last[0] or current[1] <= last[1])):
                return False
            if current[1] <= first_seen.setdefault(*current):
                return False
            self.counters[name] = current
            return True

        try:
            self.cluster.eventually(self._is_whole, seconds=HEALED_SECONDS, what="nodes and API are there")
            self.cluster.eventually(counts_on, what=f"{name} goes on")
        except NotYet:
            vmi = self.cluster.get("vmi", name)
            self.wrong.append(f"{name} was {last}, and is {self._count(name)} after {migration}: {vmi}")
        self.journal.answer(str(self.counters[name]))

    def _is_whole(self) -> bool:
        """Whether everything that the fault broke is back.

        A kubelet that has restarted a container often waits up to five minutes before the next restart. Such a Pod is
        deleted, as an operator would do; the guests run on without it meanwhile.
        """
        for pod in self.cluster.list("pods", "-n", "kubevirt"):
            states = [status.get("state", {}) for status in pod["status"].get("containerStatuses", ())]
            if any(state.get("waiting", {}).get("reason") == "CrashLoopBackOff" for state in states):
                self.cluster.try_kubectl(
                    "delete", "pod", pod["metadata"]["name"], "-n", "kubevirt", "--wait=false", QUICK
                )
        output = self.cluster.kubectl(
            "get", "nodes", "-o", "jsonpath={..conditions[?(@.type=='Ready')].status}"
        ).split()
        handlers = self.cluster.kubectl("get", "ds", "-n", "kubevirt", "-o", "jsonpath={..status.numberReady}").split()
        return output == ["True"] * len(self.cluster.nodes) and set(handlers) == {str(len(self.cluster.nodes))}

    def _count(self, name: str) -> tuple[str, int] | None:
        """Return the running instance and the counter of its guest, from the console of its Pod."""
        vmi = self.cluster.get("vmi", name)
        status = {} if vmi is None else vmi.get("status", {})
        if vmi is None or status.get("phase") != "Running":
            return None
        label = f"kubevirt.io/created-by={vmi['metadata']['uid']}"
        for pod in self.cluster.list("pods", "-n", "default", "-l", label):
            if pod["metadata"]["uid"] in status.get("activePods", {}):
                try:
                    return vmi["metadata"]["uid"], self.cluster.counter(pod["metadata"]["name"])
                except (AssertionError, ValueError, IndexError):
                    return None
        return None

    def _choose(self, vmi: dict[str, Any], source: str) -> tuple[Callable[[], None] | None, bool]:
        """Return a fault, and whether it may end the guest."""
        uid = str(vmi.get("metadata", {}).get("uid", ""))
        other = next((node for node in self.cluster.nodes if node != source), source)
        where = self.dice.choice((source, other))
        part = self.dice.choice(("virt-handler", "virt-handler", "virt-node", "libvirtd"))
        controller = self.dice.choice(self.cluster.nodes)
        seconds = self.dice.uniform(1.0, 8.0)
        side = "source" if where == source else "target"

        def named(name: str, do: Callable[[], object]) -> Callable[[], None]:
            def fault() -> None:
                do()

            fault.__name__ = name
            return fault

        faults: list[tuple[Callable[[], None] | None, bool]] = [
            (None, False),
            (named(f"kill {part} of the {side}", lambda: self._signal(where, signal.SIGKILL, part)), False),
            (named(f"kill {part} of the {side}", lambda: self._signal(where, signal.SIGKILL, part)), False),
            (
                named("kill virt-controller", lambda: self._signal(controller, signal.SIGKILL, "virt-controller")),
                False,
            ),
            (named("kill kube-apiserver", lambda: self.cluster.lab("kill", "kube-apiserver")), False),
            (named("kill QEMU of the target", lambda: self._signal(other, signal.SIGKILL, "qemu", uid)), True),
            (named("kill QEMU of the source", lambda: self._signal(source, signal.SIGKILL, "qemu", uid)), True),
            (
                named(f"stop virt-handler of the {side}", lambda: self._stop(where, "virt-handler", seconds)),
                False,
            ),
            (named(f"stop QEMU of the {side}", lambda: self._stop(where, "qemu", seconds, uid)), False),
            (named(f"freeze the {side}", lambda: self._break(where, "freeze", "thaw", seconds)), False),
            (named(f"cut the {side} off", lambda: self._break(where, "cut", "heal", seconds)), False),
        ]
        return self.dice.choice(faults)

    def _signal(self, node: str, number: signal.Signals, victim: str, *words: str) -> None:
        self.cluster.try_on_node(node, SIGNAL, str(int(number)), *VICTIMS[victim], *words)

    def _stop(self, node: str, victim: str, seconds: float, *words: str) -> None:
        self._signal(node, signal.SIGSTOP, victim, *words)
        time.sleep(seconds)
        self._signal(node, signal.SIGCONT, victim, *words)

    def _break(self, node: str, how: str, back: str, seconds: float) -> None:
        self.cluster.lab("node", how, node)
        time.sleep(seconds)
        self.cluster.lab("node", back, node)


def migrations(cluster: Cluster, *, count: int, seed: int, say: Say) -> list[str]:
    """Run `count` migrations; return the violations."""
    journeys = Journeys(cluster, random.Random(seed), Journal(say))
    observer, motion = Observer(cluster.name), Motion()
    with watching(lambda: motion.look(observer.guests()), LOOK_SECONDS):
        journeys.begin()
        for _unused in range(count):
            journeys.travel()
            if journeys.wrong or motion.doubles:
                break
        cluster.kubectl("delete", "vm", "--all", "-n", "default", "--timeout=120s")
        try:
            cluster.eventually(lambda: not observer.guests(), what="no guest is left")
        except NotYet:
            journeys.wrong.append(f"left: {observer.guests()}")
    wrong = [*journeys.wrong, *motion.doubles]
    say(json.dumps({"seed": seed, "migrations": count, "outcomes": journeys.outcomes, "wrong": wrong}))
    return wrong
