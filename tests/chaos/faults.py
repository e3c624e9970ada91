# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a cluster: processes killed and stopped, nodes frozen, partitioned, without power."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.journal import Journal
from tests.e2e.cluster import EMULATORS, SIGNAL, VICTIMS, Cluster

SPARE_GUESTS = ("virt-handler", "virt-node", "virt-controller", "virt-api", "libvirtd")
"""Killed at any time: this ends no guest."""
STOPPED_SECONDS = (1.0, 10.0)
"""Shorter than the time that a launcher tolerates a silent libvirtd: killing a frozen one has its own test."""
FROZEN_SECONDS, CUT_SECONDS = (3.0, 15.0), (5.0, 35.0)
APART_SECONDS = (4.0, 20.0)


@dataclass
class Faults:
    """One fault at a time on nodes; each is healed when its time is over."""

    cluster: Cluster
    dice: random.Random
    journal: Journal
    _next: float = 0.0
    _broken: str = ""
    """The node that is frozen or partitioned: it gets no requests."""
    _undo: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def act(self) -> None:
        """Heal faults that are over, and inject one when it is time."""
        now = time.monotonic()
        for fault in [fault for fault in self._undo if fault[0] <= now]:
            self._undo.remove(fault)
            fault[1]()
        if now < self._next:
            return
        self._next = now + self.dice.uniform(*APART_SECONDS)
        deeds = (self._kill, self._kill, self._kill_program, self._kill_guest, self._stop, self._freeze, self._cut)
        self.dice.choice((*deeds, self._power))()

    def heal(self) -> None:
        """Heal everything now."""
        for _unused, undo in self._undo:
            undo()
        self._undo.clear()

    def _node(self) -> str:
        return self.dice.choice([node for node in self.cluster.nodes if node != self._broken])

    def _signal(self, node: str, number: signal.Signals, *words: str) -> None:
        self.cluster.try_on_node(node, SIGNAL, str(int(number)), *words)

    def _kill(self) -> None:
        node, victim = self._node(), self.dice.choice(SPARE_GUESTS)
        self.journal.note(f"kill {victim} on {node}")
        self._signal(node, signal.SIGKILL, *VICTIMS[victim])

    def _stop(self) -> None:
        node, victim = self._node(), self.dice.choice(SPARE_GUESTS)
        self.journal.note(f"stop {victim} on {node}")
        self._signal(node, signal.SIGSTOP, *VICTIMS[victim])
        self._later(STOPPED_SECONDS, lambda: self._signal(node, signal.SIGCONT, *VICTIMS[victim]))

    def _kill_program(self) -> None:
        program = self.dice.choice(("kubelet", "containerd", "kube-apiserver", "etcd"))
        where = ("--node", self._node()) if program in ("kubelet", "containerd") else ()
        if program == "kubelet" and not self._are_schedulable():
            return  # a restarted kubelet ends Pods that its node's labels do not admit
        self.journal.note(f"kill {program} {' '.join(where)}")
        self.cluster.lab("kill", *where, program)

    def _are_schedulable(self) -> bool:
        result = self.cluster.try_kubectl("get", "nodes", "-l", "kubevirt.io/schedulable=true", "-o", "name")
        return len(result.stdout.split()) == len(self.cluster.nodes)

    def _kill_guest(self) -> None:
        node = self._node()
        emulators = self.cluster.try_on_node(node, EMULATORS)
        uids = [word.strip('[]" ') for word in emulators.split(",") if word.strip('[]" ')]
        if not uids:
            return
        uid, victim = self.dice.choice(sorted(uids)), self.dice.choice(("qemu", "virt-launcher"))
        self.journal.note(f"kill {victim} of {uid}", ends=(f"uid/{uid}",))
        if victim == "qemu":
            self._signal(node, signal.SIGKILL, *VICTIMS["qemu"], uid)
            return
        pods = self.cluster.try_kubectl("get", "pods", "-l", f"kubevirt.io/created-by={uid}", "-o", "jsonpath={..uid}")
        for pod in {word for word in pods.stdout.split() if word != uid}:
            self._signal(node, signal.SIGKILL, *VICTIMS["virt-launcher"], pod)

    def _freeze(self) -> None:
        self._break("freeze", "thaw", FROZEN_SECONDS)

    def _cut(self) -> None:
        self._break("cut", "heal", CUT_SECONDS)

    def _break(self, how: str, back: str, seconds: tuple[float, float]) -> None:
        if self._broken:
            return
        node = self._broken = self._node()
        self.journal.note(f"{how} {node}")
        self.cluster.lab("node", how, node)

        def mend() -> None:
            self.journal.note(f"{back} {node}")
            self.cluster.lab("node", back, node)
            self._broken = ""

        self._later(seconds, mend)

    def _power(self) -> None:
        """Cut the power and restore it at once: kubelet and containers restart."""
        if self._broken or self.dice.random() < 0.5:
            return
        node = self._node()
        self.journal.note(f"power of {node}", ends=(f"node/{node}",))
        self.cluster.lab("node", "kill", node)
        self.cluster.lab("up")

    def _later(self, seconds: tuple[float, float], undo: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + self.dice.uniform(*seconds), undo))
