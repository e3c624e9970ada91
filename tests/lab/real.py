# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of real labs share: small objects, waiting, and the traces a lab must not leave."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import Lab
from lab.cluster.waiting import is_ready
from lab.errors import ApiError
from lab.images.system import PAUSE_IMAGE
from lab.machines import network

PODS = "/api/v1/namespaces/default/pods"
# Where kubelets, runtimes and CNI plug-ins write on an ordinary host.
HOST_PATHS = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/etc/cni", "/opt/cni", "/run/containerd")
HOST_PATHS += ("/usr/libexec/kubernetes", "/opt/containerd", "/run/netns", "/var/log/pods")
HOST_SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")


def fair(seconds: float) -> float:
    """Scale a time limit for an idle machine by the load of this one."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def eventually(is_so: Callable[[], object], seconds: float, what: str) -> float:
    """Return how long it took; fail after so many seconds. An API error that may pass is retried."""
    began = time.monotonic()
    seconds = fair(seconds)
    while True:
        try:
            if is_so():
                return time.monotonic() - began
        except ApiError as error:
            if error.status not in (0, 404) and error.status < 500:
                raise
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def a_pod(name: str, *, node: str | None = None, image: str = PAUSE_IMAGE, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, "imagePullPolicy": "Never", **spec.pop("container", {})}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **placed, **spec},
    }


def run_pod(lab: Lab, pod: dict[str, Any], *, seconds: float = 20) -> dict[str, Any]:
    """Create a Pod in namespace default, wait until it is Ready and return it."""
    api, name = lab.api(), pod["metadata"]["name"]
    api.create(PODS, pod)
    eventually(lambda: is_ready(api.get(f"{PODS}/{name}") or {}), seconds, f"Pod {name} Ready")
    found = api.get(f"{PODS}/{name}")
    assert found is not None
    return found


def delete_pod(lab: Lab, name: str) -> None:
    api = lab.api()
    api.delete(f"{PODS}/{name}")
    eventually(lambda: api.get(f"{PODS}/{name}") is None, 20, f"Pod {name} gone")


def node_is_ready(lab: Lab, name: str) -> bool:
    return is_ready(lab.api().get(f"/api/v1/nodes/{name}") or {})


def host_traces() -> dict[str, object]:
    """Return the parts of the host that a lab must not change."""
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout
    rules = subprocess.run(["ip", "rule"], capture_output=True, text=True, check=True).stdout
    return {
        "paths": [path for path in HOST_PATHS if Path(path).exists()],
        "settings": {name: Path("/proc/sys", name).read_text() for name in HOST_SETTINGS},
        "nft": tables,
        "rules": rules,
    }


def traces_of(lab: Lab, host_link: str) -> list[str]:
    """Return what remains of a lab on this machine."""
    left = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/lab/{lab.name}")]
    left += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(lab.state.root) in line]
    left += [link for link in network.links() if link == host_link]
    left += [f"process {process.name}" for process in Path("/proc").glob("[0-9]*") if _mentions(process, lab)]
    listed = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True).stdout
    left += [line for line in listed.splitlines() if str(lab.state.root) in line]
    return left + ([str(lab.state.root)] if lab.state.root.exists() else [])


def _mentions(process: Path, lab: Lab) -> bool:
    try:
        return f"{lab.state.root}/".encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False
