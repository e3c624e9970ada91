# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest has printed on its serial console: the log of a container of its launcher Pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._client import paths, streams
from .._client.api import Api, expect
from .._client.transport import TIMEOUT_SECONDS
from . import kinds, transcript

CONTAINERS = ("guest-console-log", "compute")
"""Upstream's container of the captured console, and ours: the first one that the Pod has."""
_LAUNCHER = '"component":"virt-launcher"'
"""In the launcher's own messages, JSON in a line. They are in the log of its container, with what the guest printed."""
_LAUNCHER_LINES = 50
"""Lines that are read beyond those that are wanted, because some may be the launcher's."""

Object = dict[str, Any]


def read(
    api: Api,
    instance: Object,
    launchers: list[Object],
    *,
    lines: int | None = None,
    since_seconds: int | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> list[str]:
    """Return the last lines, oldest first; none if no launcher has run. Raises the API's errors.

    launchers: the Pods of the instance (kinds.launchers). since_seconds: only lines that are not older.
    """
    source = _source(instance, launchers)
    if source is None:
        return []
    pod, container = source
    query = {
        "container": container,
        "tailLines": None if lines is None else lines + _LAUNCHER_LINES,
        "sinceSeconds": since_seconds,
        "limitBytes": transcript.LIMIT,
    }
    pods, name = kinds.pods(instance["metadata"]["namespace"]), pod["metadata"]["name"]
    target = paths.with_query(pods.path(name, "log"), query)
    status, printed = streams.lines(api.transport, target, timeout_seconds)
    expect(f"read the log of Pod {name}", status, printed)
    shown = [line for line in transcript.printable(_first_bytes(printed)).splitlines() if not _is_of_launcher(line)]
    return shown if lines is None else shown[-lines:]


def _first_bytes(printed: Iterator[bytes]) -> bytes:
    """Return what was asked for, also of a server that ignores the limit."""
    received = bytearray()
    for line in printed:
        received += line
        if len(received) > transcript.LIMIT:
            break
    return bytes(received)


def _source(instance: Object, launchers: list[Object]) -> tuple[Object, str] | None:
    """Return the Pod and the container that logged the console of the current run, else of the newest attempt. Pure."""
    status = instance.get("status") or {}
    active, node = status.get("activePods") or {}, status.get("nodeName")

    def rank(pod: Object) -> tuple[bool, bool, str]:
        uid = pod["metadata"].get("uid")
        is_source = uid in active and active[uid] == node  # of a migration both Pods may be active
        return is_source, uid in active, str(pod["metadata"].get("creationTimestamp") or "")

    for pod in sorted(launchers, key=rank, reverse=True):
        container = _container(pod)
        if container is not None and container in _started(pod):
            return pod, container
    return None


def _container(pod: Object) -> str | None:
    spec = pod.get("spec") or {}
    # Upstream's is an init container that runs on.
    listed = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    names = [container.get("name") for container in listed]
    return next((name for name in CONTAINERS if name in names), None)


def _started(pod: Object) -> Iterator[str]:
    """Yield the names of the containers that have run. Others have no log."""
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        now, before = container.get("state") or {}, container.get("lastState") or {}
        if {"running", "terminated"} & now.keys() or "terminated" in before:
            yield container.get("name")


def _is_of_launcher(line: str) -> bool:
    return line.startswith("{") and _LAUNCHER in line
