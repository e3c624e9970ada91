# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of one VM start, from the API server's audit log and the components' logs.

`stages` is pure; `observe` reads its sources. All sources use this machine's clock, so their times are comparable.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.quickstart.audit import Audit, Entry, read_audit, seconds

BEFORE_SECONDS = 300.0
"""Maximum time between the request and the Pod: a first start waits for controllers."""
MARKER = "virtops-guest: ready"
SANDBOX = re.compile(r'time="([^"]+)".*RunPodSandbox for name:\\"([^\\"]+)\\".*returns sandbox id')


@dataclass(frozen=True)
class Stage:
    """One moment of a start, in seconds after the API server received the user's request."""

    name: str
    at: float


@dataclass(frozen=True)
class Sources:
    """The sources of a timeline. Each line of a log has its time."""

    audit: Audit
    pod: str
    launcher_log: tuple[str, ...]
    """Lines of kubectl logs --timestamps."""
    handler_log: tuple[str, ...]
    container_log: tuple[str, ...]


@dataclass(frozen=True)
class Timeline:
    """The moments of one start, in order."""

    stages: tuple[Stage, ...]
    skipped: int = 0
    """Unreadable entries of the audit log. Most are unauthenticated requests, for example with a wrong token."""

    def table(self) -> str:
        """Return a table: the time since the request, since the previous moment, and a bar in tenths of a second."""
        rows, before = [], 0.0
        for stage in self.stages:
            took = stage.at - before
            rows.append(f"    {stage.at:7.3f} s  +{took:6.3f}  {stage.name:<34} {'#' * round(took * 10)}")
            before = stage.at
        if not rows:
            rows = ["    the audit log no longer has it: only the newest part is kept"]
        if self.skipped:
            rows.append(f"    {self.skipped} entries of the audit log could not be read and were skipped")
        return "\n".join(rows)


def stages(sources: Sources, namespace: str, vm: str) -> Timeline:
    """Return the moments of a VM's newest start. Moments without a trace in the sources are omitted."""
    entries, skipped = sources.audit.entries, sources.audit.skipped
    start = _last(entries, lambda entry: _is(entry, "virtualmachines", namespace, vm) and _is_users(entry))
    instance = _last(entries, lambda entry: _is(entry, "virtualmachineinstances", namespace, vm, verb="create"))
    if instance is None:
        return Timeline((), skipped)
    created = instance.received
    requested = start.received if start else created
    zero = min(requested, created)  # a restart by the controller has no earlier request
    moments = {
        "request answered (admission in it)": _answered(start) if requested < created else None,
        "VMI created": _answered(instance),
        "Pod created": _answered(
            _first(entries, lambda entry: _is(entry, "pods", namespace, sources.pod, verb="create"))
        ),
        "Pod scheduled": _answered(_first(entries, lambda entry: _is(entry, "pods/binding", namespace, sources.pod))),
        "sandbox ready": _sandbox(sources),
        "launcher's first line": _logged(sources.launcher_log, lambda _unused: True),
        "disks prepared": _logged(sources.launcher_log, lambda line: '"event":"prepared"' in line),
        "libvirtd up, connected": _handled(sources.handler_log, "launcher connected", namespace, vm, created),
        "domain created": _handled(sources.handler_log, "domain started", namespace, vm, created),
        "phase Running": _answered(_first(entries, lambda entry: _is_running(entry, namespace, vm, created))),
        "guest's marker on its console": _logged(sources.launcher_log, lambda line: MARKER in line),
    }
    shown = [Stage(name, at - zero) for name, at in moments.items() if at is not None and at >= zero]
    return Timeline(tuple(sorted(shown, key=lambda stage: stage.at)), skipped)


def _is(entry: Entry, resource: str, namespace: str, name: str, verb: str | None = None) -> bool:
    expected = (resource, namespace, name)
    is_match = (entry.resource, entry.namespace, entry.name) == expected
    return is_match and entry.code < 300 and verb in (None, entry.verb)


def _is_users(entry: Entry) -> bool:
    writes = entry.verb in ("create", "update", "patch")
    return writes and not entry.user.startswith("system:serviceaccount:")


def _is_running(entry: Entry, namespace: str, vm: str, born: float) -> bool:
    by_handler = entry.user.endswith(":kubevirt-handler")
    is_status_patch = _is(entry, "virtualmachineinstances/status", namespace, vm, verb="patch")
    return is_status_patch and by_handler and entry.received >= born


def _first(entries: Iterable[Entry], wanted: Callable[[Entry], bool]) -> Entry | None:
    return next((entry for entry in entries if wanted(entry)), None)


def _last(entries: Sequence[Entry], wanted: Callable[[Entry], bool]) -> Entry | None:
    return _first(reversed(entries), wanted)


def _answered(entry: Entry | None) -> float | None:
    return None if entry is None else entry.answered


def _at(stamp: str) -> float | None:
    """Parse a time. None if the line does not begin with one: the first line of a log may be cut."""
    try:
        return seconds(stamp)
    except ValueError:
        return None


def _logged(lines: Iterable[str], wanted: Callable[[str], bool]) -> float | None:
    times = (_at(line.split(" ", 1)[0]) for line in lines if wanted(line))
    return next((at for at in times if at is not None), None)


def _sandbox(sources: Sources) -> float | None:
    matches = (SANDBOX.search(line) for line in sources.container_log)
    return next((_at(match[1]) for match in matches if match and match[2] == sources.pod), None)


def _handled(lines: Iterable[str], event: str, namespace: str, vm: str, after: float) -> float | None:
    for line in lines:
        if f'"event":"{event}"' not in line or f'"{namespace}/{vm}"' not in line:
            continue
        match = re.search(r'"time":"([^"]+)"', line)
        at = _at(match[1]) if match else None
        if at is not None and at >= after:
            return at
    return None


def observe(status: dict[str, Any], kubectl: tuple[str, ...], namespace: str, vm: str) -> Timeline:
    """Read the sources of a VM's newest start on a lab. status: the output of `lab status --output json`."""
    listed = _run(*kubectl, "get", "pods", "-n", namespace, "-l", f"vmi.kubevirt.io/id={vm}", "-o", "json")
    pods = json.loads(listed)["items"]
    if not pods:
        return Timeline(())
    newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
    name, made = newest["metadata"]["name"], seconds(newest["metadata"]["creationTimestamp"])
    logs = [Path(node["logs"]) for node in status["nodes"] if node["name"] == newest["spec"].get("nodeName")]
    sources = Sources(
        audit=read_audit(Path(status["audit_log"]), since=made - BEFORE_SECONDS),
        pod=name,
        launcher_log=_lines(*kubectl, "logs", "--timestamps", "-n", namespace, name, "-c", "compute"),
        handler_log=_lines(*kubectl, "logs", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--tail=-1"),
        container_log=tuple(
            line for place in logs for line in (place / "containerd.log").read_text(errors="replace").splitlines()
        ),
    )
    return stages(sources, namespace, vm)


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _lines(*command: str) -> tuple[str, ...]:
    """Return the output's lines. Empty if the log cannot be read, for example because the container is gone."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return tuple(done.stdout.splitlines())
