# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that cost almost nothing while they run, and the time until a change of theirs is observed.

Their guest is a firmware that waits without a boot device: this measures the control plane, not a guest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import libvirt

from controlplane.domain import layout
from lab import Lab
from lab.cluster.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.console import NotYet
from tests.e2e.machines import Manifest, a_vm

VMS = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances"
LIMIT_SECONDS = 120

Object = dict[str, Any]


def a_resting_vm(name: str, namespace: str, **spec: Any) -> Manifest:
    """Return a VM of 64 MiB without a boot device, with no grace period and almost no requests."""
    vm = a_vm(name, namespace=namespace, **spec)
    template = vm["spec"]["template"]["spec"]
    template["terminationGracePeriodSeconds"] = 0
    template["volumes"] = [{"name": "root", "emptyDisk": {"capacity": "16Mi"}}]
    template["domain"]["memory"] = {"guest": "64Mi"}
    template["domain"]["resources"] = {"requests": {"cpu": "5m", "memory": "8Mi"}}
    return vm


class Seats:
    """The VMs of one namespace, by name: changes, and the time until they are observed."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._lab = Lab(cluster.name)
        self._namespace = namespace
        self._vms, self._vmis = (path.format(namespace=namespace) for path in (VMS, VMIS))

    @property
    def _api(self) -> Api:
        """Return a new connection: the API server closes idle ones."""
        return self._lab.api()

    def start(self, name: str) -> float:
        """Start it; return the seconds until it is Running."""
        return self._until(
            name, lambda: self.want(name, "Always"), lambda event: phase_of(event["object"]) == "Running"
        )

    def stop(self, name: str) -> float:
        """Stop it; return the seconds until its instance is gone."""
        return self._until(name, lambda: self.want(name, "Halted"), lambda event: event["type"] == "DELETED")

    def want(self, name: str, run_strategy: str) -> None:
        """Set the run strategy."""
        self._api.patch(f"{self._vms}/{name}", {"spec": {"runStrategy": run_strategy}})

    def phase(self, name: str) -> str:
        """Return the phase of its instance; "" without one."""
        return phase_of(self._api.get(f"{self._vmis}/{name}") or {})

    def report(self, name: str) -> list[float]:
        """Pause and resume the guest behind the control plane's back; return the seconds until each was observed."""
        return [self.pause(name), self.resume(name)]

    def pause(self, name: str) -> float:
        """Pause the guest behind the control plane's back; return the seconds until it was observed."""
        return self._tell(name, "suspend", is_paused=True)

    def resume(self, name: str) -> float:
        """Resume the guest behind the control plane's back; return the seconds until it was observed."""
        return self._tell(name, "resume", is_paused=False)

    def _tell(self, name: str, verb: str, *, is_paused: bool) -> float:
        with closing(self._libvirt(name)) as libvirtd:
            (domain,) = libvirtd.listAllDomains()
            return self._until(name, getattr(domain, verb), lambda event: _is_paused(event["object"]) == is_paused)

    def wait_gone(self, name: str) -> None:
        """Wait until it has no instance."""
        self._cluster.wait_gone("vmi", name, namespace=self._namespace, seconds=LIMIT_SECONDS)

    def wait_running(self, count: int) -> None:
        """Wait until `count` instances run."""
        self._cluster.eventually(
            lambda: sum(phase_of(vmi) == "Running" for vmi in self._list()) >= count,
            what=f"{count} instances in {self._namespace} run",
        )

    def _list(self) -> list[Object]:
        listing = self._api.get(self._vmis)
        return listing["items"] if listing else []

    def _until(self, name: str, act: Callable[[], object], is_done: Callable[[Object], bool]) -> float:
        api = self._api
        listed = api.get(self._vmis)
        assert listed is not None
        began = time.monotonic()
        act()
        version = listed["metadata"]["resourceVersion"]
        for event in api.watch(self._vmis, resource_version=version, seconds=LIMIT_SECONDS):
            if event["object"]["metadata"].get("name") == name and is_done(event):
                return time.monotonic() - began
        raise NotYet(f"no such change within {LIMIT_SECONDS} s: {self._cluster.get('vmi', name, self._namespace)}")

    def _libvirt(self, name: str) -> Any:
        return libvirt_of(self._lab, self._cluster.launcher(name, self._namespace))


def run_directory(lab: Lab, pod: Object) -> str:
    """Return the run directory of a launcher, through the file system of its node."""
    root = f"/proc/{lab.node(pod['spec']['nodeName']).running_pid()}/root"
    return f"{root}/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~empty-dir/{layout.RUN_VOLUME}"


def libvirt_of(lab: Lab, pod: Object) -> Any:
    """Connect to libvirt in a launcher."""
    descriptor = os.open("/".join((run_directory(lab, pod), *layout.LIBVIRT_SOCKET)), os.O_PATH)
    try:  # the full path is too long for the address of a Unix socket
        return libvirt.open(f"qemu+unix:///session?socket=/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def phase_of(vmi: Object) -> str:
    """Return an instance's phase."""
    phase: str = vmi.get("status", {}).get("phase", "")
    return phase


def _is_paused(vmi: Object) -> bool:
    conditions = vmi.get("status", {}).get("conditions") or ()
    return any((condition["type"], condition["status"]) == ("Paused", "True") for condition in conditions)
