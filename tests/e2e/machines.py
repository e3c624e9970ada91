# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of e2e tests: one small guest, with the changes of a test."""

from __future__ import annotations

import json
from typing import Any

GUEST = "localhost/virtops/test-guest:0.1.0"


class Manifest(dict[str, Any]):
    """An object with its JSON text."""

    @property
    def text(self) -> str:
        """The object for kubectl."""
        return json.dumps(self)


def a_vm(name: str, *, user_data: str | None = None, namespace: str = "default", **spec: Any) -> Manifest:
    """Return a VM of 96 MiB on the disk of the test guest; run strategy Always unless `spec` has another."""
    disks: list[dict[str, Any]] = [{"name": "root", "disk": {"bus": "virtio"}}]
    volumes: list[dict[str, Any]] = [{"name": "root", "containerDisk": {"image": GUEST}}]
    if user_data is not None:
        disks.append({"name": "seed", "disk": {"bus": "sata"}})
        volumes.append({"name": "seed", "cloudInitNoCloud": {"userData": user_data}})
    if not spec.keys() & {"running", "runStrategy"}:
        spec["runStrategy"] = "Always"
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 10,
            "domain": {
                "memory": {"guest": "96Mi"},
                "devices": {"disks": disks, "interfaces": [{"name": "default", "masquerade": {}}]},
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": volumes,
        },
    }
    return Manifest(
        apiVersion="kubevirt.io/v1",
        kind="VirtualMachine",
        metadata={"name": name, "namespace": namespace},
        spec={**spec, "template": template},
    )


def with_grace(vm: Manifest, seconds: int) -> Manifest:
    vm["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = seconds
    return vm


def with_domain(vm: Manifest, *, devices: dict[str, Any] | None = None, **domain: Any) -> Manifest:
    machine = vm["spec"]["template"]["spec"]["domain"]
    machine.update(domain)
    machine["devices"].update(devices or {})
    return vm


def a_panicking_vm(name: str, run_strategy: str, model: str) -> Manifest:
    vm = a_vm(name, user_data="#!/bin/sh\npanic\n", runStrategy=run_strategy)
    return with_domain(vm, devices={"panicDevices": [{"model": model}]})


def serves_commands(**commands: str) -> str:
    """Return user data: the guest serves /www on port 8080, and runs the commands that Cluster.run_in_guest names."""
    lines = ["#!/bin/sh", "mkdir -p /www/cgi-bin"]
    for name, command in commands.items():
        lines += [f"cat > /www/cgi-bin/{name} <<'END'", "#!/bin/sh", f"{command} >/dev/null 2>&1", "echo; echo", "END"]
    return "\n".join((*lines, "chmod +x /www/cgi-bin/*", "httpd -p 8080 -h /www", ""))
