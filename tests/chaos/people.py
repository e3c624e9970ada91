# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of users on machines, random and concurrent: every verb, every strategy, every way to delete."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.chaos.journal import Journal
from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

STRATEGIES = ("Always", "Always", "RerunOnFailure", "Manual", "Once", "Halted")
NAMES = tuple(f"m{number}" for number in range(5))
SET, BARE, USERS_NAMESPACE = "crowd", "bare", "default"
VERBS = ("start", "stop", "restart")
ON_A_GUEST = ("pause", "unpause", "reset", "softreboot", "freeze", "unfreeze")
IN_A_HURRY: dict[str, dict[str, Any]] = {
    "stop": {"gracePeriod": 0},
    "restart": {"gracePeriodSeconds": 0},
    "start": {"paused": True},
}
QUICK = "--request-timeout=20s"
USUAL = re.compile(
    r"\((Conflict|NotFound|AlreadyExists|ServiceUnavailable|TooManyRequests|Timeout)\)"
    r"|refused|unable to handle|failed calling webhook|error trying to reach service|i/o timeout|Timeout|timed out"
    r"|deadline|EOF|reset by peer|etcdserver|apiserver not ready|TLS handshake|leader changed|no endpoints"
    r"|VMI is not running|doesn't have a resource type|the object has been modified|storage is \(re\)initializing"
)
"""Errors that a user may get after a concurrent action, or while a process is being killed."""


@dataclass
class People:
    """All users of one cluster."""

    cluster: Cluster
    dice: random.Random
    journal: Journal

    def act(self) -> None:
        """Let one user act."""
        deeds, weights = zip(*self._deeds(), strict=True)
        self.dice.choices(deeds, weights)[0]()

    def let_go_on(self) -> None:
        """Unpause and thaw all guests that a user has left paused or frozen."""
        for vmi in self.cluster.list("vmi"):
            for verb in ("unpause", "unfreeze"):
                self._call("virtualmachineinstances", vmi["metadata"]["name"], verb)

    def leave(self) -> None:
        """Delete everything."""
        self.journal.note("delete all", ends=("vmirs/" + SET, "vmi/" + BARE, *(f"vm/{name}" for name in NAMES)))
        self.cluster.kubectl("delete", "vmirs,vm,vmi", "--all", "-n", USERS_NAMESPACE, "--timeout=180s")

    def _deeds(self) -> Iterable[tuple[Callable[[], None], int]]:
        return (
            (self._create, 12),
            (self._power, 8),
            (self._touch_guest, 5),
            (self._switch, 3),
            (self._edit, 2),
            (self._delete, 3),
            (self._delete_instance, 2),
            (self._delete_pod, 3),
            (self._scale, 3),
        )

    def _create(self) -> None:
        name, strategy = self.dice.choice(NAMES), self.dice.choice(STRATEGIES)
        kind = self.dice.choice(("vm", "vm", "vm", "vmirs", "vmi"))
        template = a_vm(name)["spec"]["template"]
        manifest: dict[str, Any] = a_vm(name, runStrategy=strategy)
        if kind == "vmirs":
            spec = {"replicas": 2, "selector": {"matchLabels": {"app": SET}}, "template": template}
            template["metadata"]["labels"] = {"app": SET}
            manifest |= {"kind": "VirtualMachineInstanceReplicaSet", "metadata": {"name": SET}, "spec": spec}
        elif kind == "vmi":
            manifest |= {"kind": "VirtualMachineInstance", "metadata": {"name": BARE}, "spec": template["spec"]}
        ends = (f"vm/{name}",) if strategy == "Halted" else ()  # an orphaned instance then belongs to it
        what = f"create {kind}/{manifest['metadata']['name']} {strategy if kind == 'vm' else ''}"
        self._kubectl(what, ends, "create", "-f", "-", given=json.dumps(manifest))

    def _power(self) -> None:
        verb, name = self.dice.choice(VERBS), self.dice.choice(NAMES)
        self._call("virtualmachines", name, verb, IN_A_HURRY[verb] if self.dice.random() < 0.3 else {})

    def _touch_guest(self) -> None:
        name = self.dice.choice((*NAMES, BARE))
        self._call("virtualmachineinstances", name, self.dice.choice(ON_A_GUEST))

    def _call(self, of: str, name: str, verb: str, body: dict[str, Any] | None = None) -> None:
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/{USERS_NAMESPACE}/{of}/{name}/{verb}"
        short = "vm" if of == "virtualmachines" else "vmi"
        # A soft reboot without an agent presses the power button: after a crash, virt-handler no longer knows the
        # reason.
        ends = (f"{short}/{name}",) if verb in ("stop", "restart", "softreboot") else ()
        what = f"{verb} {short}/{name} {json.dumps(body) if body else ''}"
        self._kubectl(what, ends, "replace", "--raw", path, "-f", "-", given=json.dumps(body or {}))

    def _switch(self) -> None:
        name, strategy = self.dice.choice(NAMES), self.dice.choice(STRATEGIES)
        self._patch(f"vm/{name}", {"spec": {"runStrategy": strategy}}, ends=(f"vm/{name}",))

    def _edit(self) -> None:
        memory = self.dice.choice(("96Mi", "112Mi"))
        domain = {"domain": {"memory": {"guest": memory}}}
        self._patch(f"vm/{self.dice.choice(NAMES)}", {"spec": {"template": {"spec": domain}}})

    def _scale(self) -> None:
        number, is_paused = self.dice.randrange(4), self.dice.random() < 0.2
        self._patch(f"vmirs/{SET}", {"spec": {"replicas": number, "paused": is_paused}}, ends=(f"vmirs/{SET}",))

    def _patch(self, what: str, change: dict[str, Any], ends: Iterable[str] = ()) -> None:
        text = json.dumps(change)
        self._kubectl(f"patch {what} {text}", ends, "patch", what, "--type=merge", "-p", text)

    def _delete(self) -> None:
        what = self.dice.choice((*(f"vm/{name}" for name in NAMES), f"vmirs/{SET}", f"vmi/{BARE}"))
        cascade = self.dice.choice(("background", "background", "foreground", "orphan"))
        ends = () if cascade == "orphan" and not what.startswith("vmi/") else (what,)
        self._kubectl(f"delete {what} {cascade}", ends, "delete", what, f"--cascade={cascade}", "--wait=false")

    def _delete_instance(self) -> None:
        name = self.dice.choice(NAMES)
        self._kubectl(f"delete vmi/{name}", (f"vmi/{name}",), "delete", "vmi", name, "--wait=false")

    def _delete_pod(self) -> None:
        name = self.dice.choice((*NAMES, BARE))
        how = self.dice.choice(("delete", "delete by force", "evict"))
        label = f"kubevirt.io=virt-launcher,vmi.kubevirt.io/id={name}"
        ends = (f"vmi/{name}",)
        if how != "evict":
            by_force = ("--force", "--grace-period=0") if how == "delete by force" else ()
            self._kubectl(f"{how} pod of vmi/{name}", ends, "delete", "pod", "-l", label, "--wait=false", *by_force)
            return
        result = self.cluster.try_kubectl(
            "get", "pod", "-n", USERS_NAMESPACE, "-l", label, "-o", "name", QUICK
        ).stdout.split()
        for pod in (line.removeprefix("pod/") for line in result[:1]):
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod, "namespace": USERS_NAMESPACE},
            }
            path = f"/api/v1/namespaces/{USERS_NAMESPACE}/pods/{pod}/eviction"
            self._kubectl(f"evict pod of vmi/{name}", ends, "create", "--raw", path, "-f", "-", given=json.dumps(body))

    def _kubectl(self, what: str, ends: Iterable[str], *words: str, given: str | None = None) -> None:
        self.journal.note(what, ends=ends)
        where = () if "--raw" in words else ("-n", USERS_NAMESPACE)
        done = self.cluster.try_kubectl(*words, *where, QUICK, given=given)
        if done.returncode != 0:
            self.journal.answer(done.stderr.strip(), is_surprise=USUAL.search(done.stderr) is None)
