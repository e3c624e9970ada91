# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node: kubelet, launchers, virt-handler and guests. As honest as the contract asks, and as slow as it allows.

The handler checks the start grant in one quorum read and starts the guest in a later step: whatever can happen between
the two happens here. A node can be cut off (everything on it runs on, nothing gets in or out) or lose power.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.objects.decode import encode
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import FAILED, RUNNING, SCHEDULED, SUCCEEDED, is_final
from controlplane.api.objects.readiness import readiness
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import ApiError
from controlplane.virt_controller.stamps import render_stamp
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.store import Store

BAD_NODE_SELECTOR = "breaks-at-launch"
"""A VMI with this nodeSelector key has a launcher that cannot prepare its disks."""


@dataclass(slots=True)
class Launcher:
    """A launcher container. Exists from its start until its Pod is removed or the node loses power."""

    pod: Key
    pod_uid: str
    vmi: Key
    vmi_uid: str
    granted: bool = False
    domain: str = ""
    """"", running, shut down, crashed."""
    exit_code: int | None = None
    message: str = ""

    @property
    def is_running_guest(self) -> bool:
        return self.domain == "running" and self.exit_code is None


@dataclass(slots=True)
class Node:
    name: str
    store: Store
    clock: SimulatedClock
    rng: random.Random
    launchers: dict[str, Launcher] = field(default_factory=dict)
    """By Pod UID."""
    is_cut_off: bool = False
    handler_is_down: bool = False
    lost: set[str] = field(default_factory=set)
    """Pods whose launcher was running when the power went."""

    def __post_init__(self) -> None:
        self.store.create(NODE, "", {"metadata": {"name": self.name}, "spec": {}})

    def guests(self) -> list[Launcher]:
        return [one for one in self.launchers.values() if one.is_running_guest]

    def lose_power(self) -> None:
        self.lost.update(self.launchers)
        self.launchers.clear()

    def kubelet_steps(self) -> list[tuple[Key, str]]:
        """List Pods of this node that the kubelet has something to do about."""
        if self.is_cut_off:
            return []
        return [
            (key, body["metadata"]["uid"])
            for key, body in self.store.list(POD)
            if body["spec"].get("nodeName") == self.name and self._is_due(body)
        ]

    def kubelet_step(self, key: Key, uid: str) -> None:
        """Do the next thing about a Pod: start, report, stop, remove."""
        pod = self.store.get(POD, key)
        launcher = self.launchers.get(uid)
        is_over = pod["status"]["phase"] in ("Succeeded", "Failed")
        if "deletionTimestamp" in pod["metadata"]:
            self._stop(key, uid, launcher, is_over=is_over)
        elif launcher is None and uid in self.lost:
            self._report(key, uid, "Failed", reason="UnexpectedAdmissionError", message="device plugin is not back")
        elif launcher is None:
            self._start(key, uid, pod)
        elif launcher.exit_code is not None:
            self._report_end(key, launcher)
        else:
            self._report(key, uid, "Running")

    def handler_steps(self) -> list[str]:
        """List launchers (Pod UIDs) that the handler has something to do about."""
        if self.is_cut_off or self.handler_is_down:
            return []
        return [*(uid for uid, one in self.launchers.items() if self._handler_cares(one)), *self._missed()]

    def handler_step(self, uid: str) -> None:
        """Do the next thing about a launcher: check the grant, start, report, shut down, or say that there is none."""
        missed = self._missed().get(uid)
        if missed is not None:
            key = Key(missed["metadata"]["namespace"], missed["metadata"]["name"])
            self._write_phase(Launcher(key, uid, key, missed["metadata"]["uid"]), missed, FAILED)
            return
        one = self.launchers[uid]
        vmi = self.store.find(VIRTUAL_MACHINE_INSTANCE, one.vmi)
        if vmi is None or vmi["metadata"]["uid"] != one.vmi_uid:
            return
        status = vmi.get("status", {})
        if one.domain in ("shut down", "crashed"):
            self._write_phase(one, vmi, SUCCEEDED if one.domain == "shut down" else FAILED)
        elif one.domain == "running" and status.get("phase") == SCHEDULED:
            self._write_phase(one, vmi, RUNNING)
        elif one.domain == "running" and "deletionTimestamp" in vmi["metadata"]:
            self.end_guest(one, "shut down")
        elif one.domain == "" and one.granted and one.exit_code is None:
            one.domain = "running"
        elif one.domain == "":
            one.granted = self._is_granted(vmi, uid)

    def _missed(self) -> dict[str, dict[str, Any]]:
        """List the VMIs of this node, by granted Pod, of whose launcher nothing is left here or in the API."""
        pods = {body["metadata"]["uid"] for _unused, body in self.store.list(POD)}
        return {
            uid: body
            for _unused, body in self.store.list(VIRTUAL_MACHINE_INSTANCE)
            if body.get("status", {}).get("nodeName") == self.name and not is_final(body["status"].get("phase", ""))
            for uid in body["status"].get("activePods") or {}
            if uid not in pods and not self._is_left(uid)
        }

    def _is_left(self, uid: str) -> bool:
        """Tell whether there is a launcher that still runs, or that had a guest whose end can be told."""
        one = self.launchers.get(uid)
        return one is not None and (one.exit_code is None or bool(one.domain))

    def end_guest(self, one: Launcher, how: str) -> None:
        """End a guest: shut down or crashed. Its supervisor ends with it."""
        if one.domain:
            one.domain = how
        one.exit_code = 0 if how == "shut down" else 1
        one.message = "" if how == "shut down" else "the guest crashed"

    def _is_due(self, pod: dict[str, Any]) -> bool:
        uid, phase = pod["metadata"]["uid"], pod["status"]["phase"]
        launcher = self.launchers.get(uid)
        if "deletionTimestamp" in pod["metadata"]:
            return True
        if phase in ("Succeeded", "Failed"):
            return False
        return launcher is None or launcher.exit_code is not None or phase != "Running"

    def _start(self, key: Key, uid: str, pod: dict[str, Any]) -> None:
        if self.rng.random() < 0.1:
            waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
            self._report(key, uid, "Pending", state=waiting)
            return
        owner = pod["metadata"]["ownerReferences"][0]
        launcher = Launcher(key, uid, Key(key.namespace, owner["name"]), owner["uid"])
        if BAD_NODE_SELECTOR in pod["spec"].get("nodeSelector", {}):
            launcher.exit_code, launcher.message = 1, "volume root: not a disk image"
        self.launchers[uid] = launcher

    def _stop(self, key: Key, uid: str, launcher: Launcher | None, *, is_over: bool) -> None:
        if launcher is not None and launcher.exit_code is None:
            self.end_guest(launcher, "shut down" if self.rng.random() < 0.8 else "crashed")
        elif launcher is not None and not is_over and self.rng.random() < 0.7:
            self._report_end(key, launcher)
        else:
            self.launchers.pop(uid, None)
            self.lost.discard(uid)
            self.store.finish_pod(key, uid)

    def _report_end(self, key: Key, launcher: Launcher) -> None:
        ended = {"terminated": {"exitCode": launcher.exit_code, "message": launcher.message}}
        phase = "Succeeded" if launcher.exit_code == 0 else "Failed"
        self._report(key, launcher.pod_uid, phase, state=ended)

    def _report(
        self,
        key: Key,
        uid: str,
        phase: str,
        *,
        state: dict[str, Any] | None = None,
        reason: str = "",
        message: str = "",
    ) -> None:
        status: dict[str, Any] = {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}]}
        if phase == "Running":
            state = {"running": {"startedAt": render_stamp(self.clock.now())}}
            status["conditions"].append({"type": "Ready", "status": "True"})
        if state is not None:
            status["containerStatuses"] = [{"name": "compute", "state": state}]
        if reason:
            status.update(reason=reason, message=message)
        self.store.set_pod(key, uid, status=status)

    def _handler_cares(self, one: Launcher) -> bool:
        vmi = self.store.find(VIRTUAL_MACHINE_INSTANCE, one.vmi)
        if vmi is None or vmi["metadata"]["uid"] != one.vmi_uid:
            return False
        if vmi.get("status", {}).get("nodeName") not in (None, self.name):
            return False
        phase = vmi.get("status", {}).get("phase", "")
        if one.domain == "running":
            return phase == SCHEDULED or "deletionTimestamp" in vmi["metadata"]
        if one.domain:
            return not is_final(phase)
        return one.exit_code is None and (one.granted or self._is_granted(vmi, one.pod_uid))

    def _is_granted(self, vmi: dict[str, Any], uid: str) -> bool:
        status = vmi.get("status", {})
        return (
            status.get("phase") == SCHEDULED
            and status.get("nodeName") == self.name
            and list(status.get("activePods", {})) == [uid]
            and "deletionTimestamp" not in vmi["metadata"]
        )

    def _conditions(self, one: Launcher, status: dict[str, Any], phase: str) -> list[dict[str, Any]]:
        """Say with the phase whether the VMI is ready, as virt-handler does."""
        pod = self.store.find(POD, one.pod) or {"status": {}, "metadata": {}}
        listed = tuple(
            Condition(type=each["type"], status=each["status"]) for each in pod["status"].get("conditions", ())
        )
        ready = readiness(phase, listed, is_pod_deleting="deletionTimestamp" in pod["metadata"])
        return [*(each for each in status.get("conditions", ()) if each["type"] != "Ready"), encode(ready)]

    def _write_phase(self, one: Launcher, vmi: dict[str, Any], phase: str) -> None:
        status = vmi.get("status", {})
        if is_final(status.get("phase", "")):
            return
        entry = {"phase": phase, "phaseTransitionTimestamp": render_stamp(self.clock.now())}
        patch = {
            "phase": phase,
            "phaseTransitionTimestamps": [*status.get("phaseTransitionTimestamps", ()), entry],
            "conditions": self._conditions(one, status, phase),
        }
        try:
            self.store.patch(
                VIRTUAL_MACHINE_INSTANCE,
                one.vmi,
                {"status": patch},
                subresource="status",
                resource_version=vmi["metadata"]["resourceVersion"],
                uid=one.vmi_uid,
            )
        except ApiError:
            return
