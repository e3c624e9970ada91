# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node: kubelet, launchers and guests. It keeps the Kubernetes contract, and is as slow as that allows.

It can be partitioned (everything on it runs on) or lose power (everything on it ends). virt-handler is a separate
process, in handler.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Literal

from controlplane.api.objects.resources import NODE, POD, Key
from controlplane.api.timestamps import format_timestamp
from tests.controlplane.simulation.agent import Agent
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, UNREACHABLE, set_taint
from tests.controlplane.simulation.launcher import DomainError, Launcher
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import OVER, Json, Store

BAD_NODE_SELECTOR = "breaks-at-launch"
"""A VMI with this nodeSelector key has a launcher that cannot prepare its disks."""
NO_KERNEL = "has-no-kernel"
"""A VMI with this nodeSelector key has a guest that cannot boot."""
DEAF = "ignores-the-power-button"
"""A VMI with this nodeSelector key has a guest that ignores the power button."""

Broken = Literal["", "refuses", "lacks the launcher", "does nothing"]
WAYS_TO_BREAK: tuple[Broken, ...] = ("refuses", "lacks the launcher", "does nothing")
LAUNCHER = "launcher"
"""The launcher's image."""

HALTS = 0.5
"""How often a guest takes a step of its own to shut down."""
WITH_AGENT = 0.6
"""How often a booted guest has an agent."""
HESITATIONS = (0, 5, 30, 60)
"""Steps that QEMU may delay a start."""


@dataclass(slots=True)
class Node:
    name: str
    store: Store
    true: SimulatedClock
    rng: random.Random
    launchers: dict[str, Launcher] = field(default_factory=dict)
    """By Pod UID."""
    is_cut_off: bool = False
    is_off: bool = False
    handler_is_down: bool = False
    kind: type[Launcher] = Launcher
    """The class of its launchers."""
    broken: Broken = ""
    """How it fails to start new Pods. Running ones stay."""
    lost: set[str] = field(default_factory=set)
    """Pods whose launcher ran when the power failed."""
    endings: list[tuple[str, str]] = field(default_factory=list)
    """Guests (VMI UID, Pod UID) that virt-handler asked to end since the last check."""
    clock: WrongClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = WrongClock(self.true)
        self.register()

    @property
    def is_unreachable(self) -> bool:
        return self.is_cut_off or self.is_off

    def guests(self) -> list[Launcher]:
        return [launcher for launcher in self.launchers.values() if launcher.is_running_guest]

    def register(self) -> None:
        """Let the kubelet create its Node, or reset conditions and taints set while it was away."""
        self.store.actor = "kubelet"
        key = Key("", self.name)
        if self.store.find(NODE, key) is None:
            self.store.create(NODE, "", {"metadata": {"name": self.name}, "spec": {}})
        for taint in (UNREACHABLE, OUT_OF_SERVICE):
            set_taint(self.store, self.name, taint, on=False)

    def lose_power(self) -> None:
        self.is_off = True
        self.lost.update(uid for uid, launcher in self.launchers.items() if launcher.is_up)
        for launcher in self.launchers.values():
            launcher.exit(137, "")
            launcher.state = None

    def heal(self) -> None:
        self.is_cut_off = self.is_off = False
        self.register()

    def has_launcher(self, pod_uid: str) -> bool:
        """Whether a process or the directory of that Pod is on this machine."""
        return pod_uid in self.launchers

    def host_steps(self) -> list[Launcher]:
        """List launchers in which something can happen by itself."""
        if self.is_off:
            return []
        return [launcher for launcher in self.launchers.values() if launcher.is_up and self._can_go_on(launcher)]

    def host_step(self, launcher: Launcher) -> None:
        """Let the processes of a launcher do their next step."""
        if launcher.end_if_over():
            return
        if launcher.is_going_down:
            launcher.end_guest("shut down")
        elif launcher.is_starting:
            try:
                launcher.go_on_starting()
            except DomainError:
                return
        elif not launcher.is_listening:
            launcher.listen()

    def kubelet_steps(self) -> list[tuple[Key, str]]:
        """List Pods of this node for which the kubelet has work, including those deleted from the API."""
        if self.is_unreachable:
            return []
        pods = {body["metadata"]["uid"]: (key, body) for key, body in self.store.list(POD)}
        due = [(key, uid) for uid, (key, body) in pods.items() if self._is_due(body)]
        return due + [(item.pod, uid) for uid, item in self.launchers.items() if uid not in pods]

    def kubelet_step(self, key: Key, uid: str) -> None:
        """Do the next step for a Pod: start, report, stop, remove."""
        self.store.actor = "kubelet"
        pod, launcher = self.store.find(POD, key), self.launchers.get(uid)
        if pod is None or pod["metadata"]["uid"] != uid:
            self._sweep(uid, launcher)
        elif "deletionTimestamp" in pod["metadata"]:
            self._stop(pod, launcher)
        elif uid in self.lost:
            self._report(pod, "Failed", reason="UnexpectedAdmissionError", message="device plugin is not back")
        elif launcher is None:
            self._start(key, uid, pod)
        elif launcher.exit_code is not None:
            self._report_end(pod, launcher)
        else:
            self._report(pod, "Running")

    def _can_go_on(self, launcher: Launcher) -> bool:
        return launcher.is_starting or launcher.is_going_down or not launcher.is_listening or launcher.is_over

    def _is_due(self, pod: Json) -> bool:
        if pod["spec"].get("nodeName") != self.name:
            return False
        uid, phase = pod["metadata"]["uid"], pod["status"]["phase"]
        launcher = self.launchers.get(uid)
        if "deletionTimestamp" in pod["metadata"]:
            return True
        if phase in OVER or (launcher is None and uid not in self.lost and self._can_only_wait(pod)):
            return False
        return launcher is None or uid in self.lost or launcher.exit_code is not None or phase != "Running"

    def _can_only_wait(self, pod: Json) -> bool:
        """Whether there is nothing to do or report for a Pod without processes."""
        states = [item["state"] for item in pod["status"].get("containerStatuses", ())]
        reported = any(LAUNCHER in item.get("waiting", {}).get("message", "") for item in states)
        return self.broken == "does nothing" or (self.broken == "lacks the launcher" and reported)

    def _begins_nothing(self, pod: Json) -> bool:
        """Report the Pod status of a broken node; return whether the node is broken."""
        if self.broken == "refuses":
            self._report(pod, "Failed", reason="UnexpectedAdmissionError", message="no device is given")
        elif self.broken:
            message = f'Back-off pulling image "{LAUNCHER}"'
            self._report(pod, "Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": message}})
        return bool(self.broken)

    def _start(self, key: Key, uid: str, pod: Json) -> None:
        if self._begins_nothing(pod):
            return
        if self.rng.random() < 0.1:
            waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
            self._report(pod, "Pending", state=waiting)
            return
        owner = (pod["metadata"].get("ownerReferences") or [{}])[0]
        launcher = self.kind(key, uid, Key(key.namespace, owner.get("name", "")), owner.get("uid", ""))
        selector = pod["spec"].get("nodeSelector", {})
        launcher.fails_to_boot = NO_KERNEL in selector
        launcher.is_deaf = DEAF in selector
        launcher.halts = self.rng.random() < HALTS
        launcher.hesitation = self.rng.choice(HESITATIONS)
        launcher.boots_with = Agent(self.rng) if self.rng.random() < WITH_AGENT else None
        if BAD_NODE_SELECTOR in selector:
            launcher.exit(1, "volume root: not a disk image")
        self.launchers[uid] = launcher

    def _stop(self, pod: Json, launcher: Launcher | None) -> None:
        """SIGTERM, SIGKILL, the report, the end; the directory is removed before or after it."""
        uid, phase = pod["metadata"]["uid"], pod["status"]["phase"]
        if launcher is not None and launcher.is_up:
            self._end(launcher)
        elif launcher is not None and launcher.exit_code is not None and phase not in OVER and self.rng.random() < 0.7:
            self._report_end(pod, launcher)
        else:
            if self.rng.random() < 0.8:
                self.launchers.pop(uid, None)
            self.lost.discard(uid)
            self.store.finish_pod(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]), uid)

    def _sweep(self, uid: str, launcher: Launcher | None) -> None:
        """End a Pod that the API no longer has: processes first, then the directory."""
        if launcher is not None and launcher.is_up:
            self._end(launcher)
        else:
            self.launchers.pop(uid, None)
            self.lost.discard(uid)

    def _end(self, launcher: Launcher) -> None:
        if not launcher.is_told_to_end:
            launcher.is_told_to_end = True
            if launcher.is_running_guest:
                launcher.press_power()
        elif not launcher.end_if_over() and self.rng.random() < 0.3:
            launcher.exit(137)

    def _report_end(self, pod: Json, launcher: Launcher) -> None:
        ended = {"terminated": {"exitCode": launcher.exit_code, "message": launcher.message}}
        self._report(pod, "Succeeded" if launcher.exit_code == 0 else "Failed", state=ended)

    def _report(
        self, pod: Json, phase: str, *, state: dict[str, Any] | None = None, reason: str = "", message: str = ""
    ) -> None:
        status: dict[str, Any] = {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}]}
        if phase == "Running":
            state = {"running": {"startedAt": format_timestamp(self.clock.now())}}
            status["conditions"].append({"type": "Ready", "status": "True"})
        if state is not None:
            status["containerStatuses"] = [{"name": "compute", "state": state}]
        if reason:
            status.update(reason=reason, message=message)
        meta = pod["metadata"]
        self.store.set_pod(Key(meta["namespace"], meta["name"]), meta["uid"], status=status)
