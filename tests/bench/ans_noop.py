# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ans-noop: the cost of a task whose VMs already match, with our module and with kubevirt.core's.

Same machine, same ansible-core and Python (those of PyPI's `ansible`, which includes the peer), same API server (a lab
without nodes), same VMs, alternating rounds. The time of an empty play is subtracted. Requests are counted in the audit
log.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import Lab
from lab.collection import linked_under
from lab.paths import Cache
from tests.integration.served import serving

ROOT = Path(__file__).resolve().parents[2]
PEER = ("ansible==12.3.0", "kubernetes==37.0.2", "jsonpatch>=1.33")
ROUNDS = 5
NAMESPACE = "bench"
RATIOS_AT_MOST = {"ans-noop-loop-10": 0.56, "ans-noop-bulk-100": 0.012}
REQUESTS_AT_MOST = 1.0
VMS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
OURS, THEIRS = "virtops.kubevirt.kubevirt_vm", "kubevirt.core.kubevirt_vm"
MACHINE = {
    "namespace": NAMESPACE,
    "run_strategy": "Halted",
    "spec": {
        "domain": {
            "memory": {"guest": "256Mi"},
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]},
        },
        "volumes": [{"name": "root", "containerDisk": {"image": "localhost/virtops/test-guest:0.1.0"}}],
    },
}

Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Play:
    """One playbook: its tasks and its number of VMs."""

    name: str
    tasks: list[dict[str, Any]]
    vms: int


def names(count: int) -> list[str]:
    """Return the names of `count` VMs."""
    return [f"vm-{index}" for index in range(count)]


def looped(module: str, count: int) -> list[dict[str, Any]]:
    """Return a task that declares VMs one by one; the peer has only loops."""
    return [{"name": "Declare", module: {"name": "{{ item }}", **MACHINE}, "loop": names(count)}]


def in_bulk(count: int) -> list[dict[str, Any]]:
    """Return a task that declares all VMs at once."""
    return [{"name": "Declare", OURS: {**MACHINE, "vms": [{"name": name} for name in names(count)]}}]


def plays() -> list[Play]:
    """Return the plays; the empty one measures Ansible without any task."""
    measured = [Play("empty", [], 1)]
    for count in (1, 10):
        measured.append(Play(f"peer-loop-{count}", looped(THEIRS, count), count))
        measured.append(Play(f"loop-{count}", looped(OURS, count), count))
    return [*measured, *(Play(f"bulk-{count}", in_bulk(count), count) for count in (10, 100))]


def peer_environment(cache: Path) -> Path:
    """Return the program folder of an environment with the peer; it is created once."""
    environment = cache / "peer-venv"
    mark = environment / "complete"
    pins = "\n".join(PEER)
    if not mark.exists() or mark.read_text() != pins:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEER]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        mark.write_text(pins)
    return environment / "bin"


@contextmanager
def cluster() -> Iterator[Lab]:
    """Run an API server with our CRDs and the VMs."""
    with serving("bench-noop") as lab:
        api = lab.api()
        api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        api.close()
        yield lab


class Runner:
    """Runs plays in a scratch folder against a lab."""

    def __init__(self, lab: Lab, programs: Path, scratch: Path) -> None:
        self._program = programs / "ansible-playbook"
        self._audit = lab.audit_log
        self._scratch = scratch
        (scratch / "ansible.cfg").write_text("[defaults]\nretry_files_enabled = false\n")
        # Programs beside those of the peer are found by name.
        self._environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(scratch / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(linked_under(scratch)),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
        }

    def run(self, play: Play, *, changes: bool = False) -> float:
        """Run a play; return its seconds. Fails when a no-op changes something: it would measure nothing."""
        path = self._scratch / f"{play.name}.yml"
        path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": play.tasks}]))
        began = time.monotonic()
        done = subprocess.run(
            [str(self._program), str(path)], env=self._environment, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        if done.returncode or ("changed=0" not in done.stdout and play.tasks and not changes):
            raise RuntimeError(f"{play.name} failed or changed something:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return seconds

    def requests(self, play: Play) -> float:
        """Return the number of requests of a play for each VM."""
        before = self._audited()
        self.run(play)
        return (self._audited() - before) / play.vms

    def _audited(self) -> int:
        with self._audit.open() as lines:
            events = (json.loads(line) for line in lines if f'"namespace":"{NAMESPACE}"' in line)
            return sum(event.get("stage") == "ResponseComplete" for event in events)


def measure(runner: Runner) -> tuple[dict[str, float], dict[str, float]]:
    """Return by play the seconds per VM (medians) and the requests per VM."""
    runner.run(Play("prepare", in_bulk(100), 100), changes=True)
    requests = {play.name: runner.requests(play) for play in plays() if play.tasks}  # this is the warm-up too
    seconds: dict[str, list[float]] = {play.name: [] for play in plays()}
    for number in range(ROUNDS):
        for play in plays() if number % 2 == 0 else reversed(plays()):
            seconds[play.name].append(runner.run(play))
    empty = statistics.median(seconds["empty"])
    return {p.name: (statistics.median(seconds[p.name]) - empty) / p.vms for p in plays() if p.tasks}, requests


def run(report: Report) -> None:
    """Measure and report: loops against the peer's loop of the same length, bulk against its loop of ten.

    Raises AssertionError after the last report when a limit is exceeded.
    """
    programs = peer_environment(Cache.from_environment().root)
    with cluster() as lab, tempfile.TemporaryDirectory(prefix="virtops-bench-") as scratch:
        seconds, requests = measure(Runner(lab, programs, Path(scratch)))
    failures = []
    pairs = (("loop-1", "peer-loop-1"), ("loop-10", "peer-loop-10"), ("bulk-10", "peer-loop-10"))
    for ours, theirs in (*pairs, ("bulk-100", "peer-loop-10")):
        taken = figure(f"ans-noop-{ours}", "s per VM", seconds[ours], seconds[theirs], theirs)
        sent = figure(f"ans-noop-{ours}-requests", "requests per VM", requests[ours], requests[theirs], theirs)
        report(taken)
        report(sent)
        failures += missed(taken) + missed(sent)
    if failures:
        raise AssertionError("; ".join(failures))


def missed(taken: dict[str, Any]) -> list[str]:
    """Return the limits that are exceeded."""
    name = str(taken["name"])
    if name.endswith("-requests"):
        return [f"{name}: {taken['value']} a VM"] if taken["value"] > REQUESTS_AT_MOST else []
    most = RATIOS_AT_MOST.get(name)
    return [f"{name}: {taken['ratio']} of the peer's time"] if most is not None and taken["ratio"] > most else []


def figure(name: str, unit: str, value: float, peer: float, peer_is: str) -> dict[str, Any]:
    """Return one figure beside that of the peer."""
    return {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "rounds": ROUNDS,
        "peer": round(peer, 4),
        "peer_is": f"kubevirt.core of {PEER[0]}, {peer_is.removeprefix('peer-')}, same server, same run",
        "ratio": round(value / peer, 3),
        "target": REQUESTS_AT_MOST if name.endswith("-requests") else RATIOS_AT_MOST.get(name),
    }
