# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of one VM start went: the API server's audit log and the components' logs, put in order.

`stages` is pure; `observe` fetches what it reads. All clocks are this machine's, so times of different sources compare.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

MARKER = "virtops-guest: ready"
SANDBOX = re.compile(r'time="([^"]+)".*RunPodSandbox for name:\\"([^\\"]+)\\".*returns sandbox id')


@dataclass(frozen=True)
class Stage:
    """One moment of a start, in seconds after the API server received the user's request."""

    name: str
    at: float


@dataclass(frozen=True)
class Sources:
    """What tells of a start. Lines of logs carry their own times."""

    audit: tuple[dict[str, Any], ...]
    pod: str
    launcher_log: tuple[str, ...]
    """Lines of kubectl logs --timestamps."""
    handler_log: tuple[str, ...]
    container_log: tuple[str, ...]


@dataclass(frozen=True)
class Timeline:
    """The moments of one start, in order."""

    stages: tuple[Stage, ...]

    def table(self) -> str:
        """Return the moments as text: since the request, since the moment before, and a bar of tenths of a second."""
        rows, before = [], 0.0
        for stage in self.stages:
            took = stage.at - before
            rows.append(f"    {stage.at:7.3f} s  +{took:6.3f}  {stage.name:<34} {'#' * round(took * 10)}")
            before = stage.at
        return "\n".join(rows)


def seconds(stamp: str) -> float:
    """Return an RFC 3339 time as seconds since the epoch."""
    cut = re.sub(r"(\.\d{6})\d+", r"\1", stamp.replace("Z", "+00:00"))
    return datetime.fromisoformat(cut).timestamp()


def stages(sources: Sources, namespace: str, vm: str) -> Timeline:
    """Find the moments of a VM's newest start; those whose source has no trace are left out."""
    start = _last(sources.audit, lambda one: _is(one, "virtualmachines", namespace, vm) and _is_users(one))
    instance = _last(sources.audit, lambda one: _is(one, "virtualmachineinstances", namespace, vm, verb="create"))
    if start is None or instance is None:
        return Timeline(())
    asked = seconds(start["requestReceivedTimestamp"])
    born = seconds(instance["requestReceivedTimestamp"])
    zero = min(asked, born)  # a restart is the controller's own: no request came before it
    moments = {
        "request answered (admission in it)": _answered(start) if asked < born else None,
        "VMI created": _answered(instance),
        "Pod created": _answered(
            _first(sources.audit, lambda one: _is(one, "pods", namespace, sources.pod, verb="create"))
        ),
        "Pod scheduled": _answered(_first(sources.audit, lambda one: _is(one, "pods/binding", namespace, sources.pod))),
        "sandbox ready": _sandbox(sources),
        "launcher's first line": _logged(sources.launcher_log, lambda _unused: True),
        "disks prepared": _logged(sources.launcher_log, lambda line: '"event":"prepared"' in line),
        "libvirtd up, connected": _handled(sources.handler_log, "launcher connected", namespace, vm, born),
        "domain created": _handled(sources.handler_log, "domain started", namespace, vm, born),
        "phase Running": _answered(_first(sources.audit, lambda one: _is_running(one, namespace, vm, born))),
        "guest's marker on its console": _logged(sources.launcher_log, lambda line: MARKER in line),
    }
    found = [Stage(name, at - zero) for name, at in moments.items() if at is not None and at >= zero]
    return Timeline(tuple(sorted(found, key=lambda stage: stage.at)))


def _is(event: dict[str, Any], resource: str, namespace: str, name: str, verb: str | None = None) -> bool:
    where = event.get("objectRef", {})
    plural, _unused, sub = resource.partition("/")
    return (
        where.get("resource") == plural
        and where.get("subresource", "") == sub
        and where.get("namespace") == namespace
        and where.get("name") == name
        and event.get("responseStatus", {}).get("code", 0) < 300
        and verb in (None, event.get("verb"))
    )


def _is_users(event: dict[str, Any]) -> bool:
    writes = event["verb"] in ("create", "update", "patch")
    return writes and not event["user"]["username"].startswith("system:serviceaccount:")


def _is_running(event: dict[str, Any], namespace: str, vm: str, born: float) -> bool:
    by_handler = event["user"]["username"].endswith(":kubevirt-handler")
    mine = _is(event, "virtualmachineinstances/status", namespace, vm, verb="patch")
    return mine and by_handler and seconds(event["requestReceivedTimestamp"]) >= born


def _first(events: Iterable[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    return next((event for event in events if wanted(event)), None)


def _last(events: Iterable[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    return next((event for event in reversed(tuple(events)) if wanted(event)), None)


def _answered(event: dict[str, Any] | None) -> float | None:
    return None if event is None else seconds(event["stageTimestamp"])


def _logged(lines: Iterable[str], wanted: Callable[[str], bool]) -> float | None:
    return next((seconds(line.split(" ", 1)[0]) for line in lines if wanted(line)), None)


def _sandbox(sources: Sources) -> float | None:
    found = (SANDBOX.search(line) for line in sources.container_log)
    return next((seconds(one[1]) for one in found if one and one[2] == sources.pod), None)


def _handled(lines: Iterable[str], event: str, namespace: str, vm: str, after: float) -> float | None:
    for line in lines:
        if f'"event":"{event}"' not in line or f'"{namespace}/{vm}"' not in line:
            continue
        at = seconds(json.loads(line)["time"])
        if at >= after:
            return at
    return None


def observe(status: dict[str, Any], kubectl: tuple[str, ...], namespace: str, vm: str) -> Timeline:
    """Read the sources of a VM's newest start on a lab; status is what `lab status --output json` prints."""
    pods = json.loads(_run(*kubectl, "get", "pods", "-n", namespace, "-l", f"vmi.kubevirt.io/id={vm}", "-o", "json"))[
        "items"
    ]
    newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
    node = next(one for one in status["nodes"] if one["name"] == newest["spec"]["nodeName"])
    handlers = ("-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--tail=-1")
    sources = Sources(
        audit=tuple(
            json.loads(line)
            for line in Path(status["audit_log"]).read_text().splitlines()
            if "kubevirt" in line or "pods" in line
        ),
        pod=newest["metadata"]["name"],
        launcher_log=tuple(
            _run(
                *kubectl, "logs", "--timestamps", "-n", namespace, newest["metadata"]["name"], "-c", "compute"
            ).splitlines()
        ),
        handler_log=tuple(_run(*kubectl, "logs", *handlers).splitlines()),
        container_log=tuple((Path(node["logs"]) / "containerd.log").read_text(errors="replace").splitlines()),
    )
    return stages(sources, namespace, vm)


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
