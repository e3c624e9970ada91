# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""role-deploy: role control_plane on a lab of two nodes that have the images, and the same run again.

The lower bound is kubectl: it applies the same objects, and waits until the Pods are Ready. Each round has a new
cluster for either, because a removal leaves caches behind.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import Lab
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.e2e.deployed import EMULATED, apply_role, archives
from tests.unit.tasks import ROLES, Host, role_variables

Object = dict[str, Any]
Report = Callable[[Object], None]

ROUNDS = 3
RATIO_AT_MOST, AGAIN_AT_MOST = 2.5, 0.5
"""The first run, to kubectl's time; the second, to the first."""
NAMESPACE = "kubevirt"
LIMIT_SECONDS = 300
FOUND: Object = {
    "definitions_version": None,
    "control_plane_nodes": [],
    "kept_control_plane_nodes": [],
    "check_mode": False,
}
"""What the role finds in a lab before its first run, as far as its objects depend on it."""


def run(report: Report) -> None:
    """Measure and report. Raises AssertionError after the last report when a limit is exceeded."""
    images, objects = list(archives().values()), rendered()
    floors, firsts, seconds = list[float](), list[float](), list[float]()
    lab = Lab(os.environ.get("E2E_LAB_PREFIX", "") + "bench-role")
    for _round in range(ROUNDS):
        with lab.running(2, images=images):
            floors.append(_timed(lambda: _apply(lab, objects)))
        with lab.running(2, images=images):
            firsts.append(_timed(lambda: apply_role(lab, "control_plane", EMULATED)))
            seconds.append(_timed(lambda: apply_role(lab, "control_plane", EMULATED)))
    kubectl = "kubectl: the same objects until all Pods are Ready, same run"
    failures = [
        *_report(report, "role-deploy", firsts, (floors, kubectl, RATIO_AT_MOST)),
        *_report(report, "role-deploy-again", seconds, (firsts, "the first run of the role", AGAIN_AT_MOST)),
    ]
    if failures:
        raise AssertionError("; ".join(failures))


def rendered() -> list[Object]:
    """Return the objects that the role applies, in its order, without the configuration."""
    variables = {**role_variables("control_plane"), "__control_plane_found": FOUND, **EMULATED}
    host = Host(ROLES / "control_plane", variables)
    objects: list[Object] = host.value("{{ __control_plane_definitions + __control_plane_labelled_components }}")
    return objects


def _apply(lab: Lab, objects: list[Object]) -> None:
    """Apply objects with kubectl, and wait for the Pods."""
    program = [str(ensure_programs(lab.cache, silent).kube("kubectl")), "--kubeconfig", str(lab.kubeconfig)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        _run([*program, "apply", "--server-side", "--filename", str(file)])
    names = [
        (item["kind"], item["metadata"]["name"]) for item in objects if item["kind"] in ("Deployment", "DaemonSet")
    ]
    for kind, name in names:
        limit = f"--timeout={LIMIT_SECONDS}s"
        _run([*program, "rollout", "status", f"{kind}/{name}", "--namespace", NAMESPACE, limit])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * LIMIT_SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _report(report: Report, name: str, took: list[float], bar: tuple[list[float], str, float]) -> list[str]:
    peers, peer_is, at_most = bar
    value, peer = statistics.median(took), statistics.median(peers)
    report(
        {
            "name": name,
            "value": round(value, 1),
            "unit": "s",
            "min": round(min(took), 1),
            "max": round(max(took), 1),
            "rounds": len(took),
            "peer": round(peer, 1),
            "peer_is": peer_is,
            "ratio": round(value / peer, 2),
            "target": at_most,
        }
    )
    return [f"{name} takes {value / peer:.2f} times as long as {peer_is}"] if value / peer > at_most else []
