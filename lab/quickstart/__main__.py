# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make quickstart: from a bare machine to a guest that prints on its console.

Each step is a command that a user could type. This file runs the steps in order, shows their output, and reports the
timeline at the end. The steps are in lab/, images/ and playbooks/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.collection import ROOT, linked_under
from lab.quickstart.inputs import find_problem
from lab.quickstart.timeline import Timeline, observe

WORK = ROOT / ".cache/quickstart"
VM = "first"
MARKER = "virtops-guest: ready"
CONSOLE_LINES = 12


class QuickstartError(Exception):
    """A step failed. Its output has the reason."""


def step(title: str, *command: str, environment: dict[str, str] | None = None) -> None:
    """Run one step with its output on the terminal, and print its duration."""
    print(f"\n==> {title}\n    {' '.join(command)}", flush=True)
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode != 0:
        raise QuickstartError(f"{title}: exit code {done.returncode}; its output is above")
    print(f"    done in {time.monotonic() - started:.1f} s", flush=True)


@contextmanager
def in_parallel_with(title: str, *command: str) -> Iterator[None]:
    """Run one step in parallel with the block. Show its output after the block."""
    started = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield
        except BaseException:
            process.terminate()
            raise
        code = process.wait()
        output.seek(0)
        print(f"\n==> {title}\n    {' '.join(command)}\n{output.read().rstrip()}", flush=True)
    if code != 0:
        raise QuickstartError(f"{title}: exit code {code}; its output is above")
    print(f"    done {time.monotonic() - started:.1f} s after its start", flush=True)


def capture(*command: str) -> str:
    """Run a command and return its output."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise QuickstartError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def make_namespace(kubectl: tuple[str, ...], namespace: str) -> None:
    """Create the VM's namespace unless it exists."""
    if not capture(*kubectl, "get", "namespace", namespace, "--ignore-not-found", "--output", "name"):
        step(f"The namespace {namespace}", *kubectl, "create", "namespace", namespace)


def deploy(lab: tuple[str, ...], kubeconfig: str, namespace: str) -> None:
    """Run the playbook on the lab."""
    WORK.mkdir(parents=True, exist_ok=True)
    inventory = WORK / "inventory.yml"
    inventory.write_text(capture(*lab, "inventory"))
    step(
        "Deploy the control plane and provision a VM: the collection's own playbook",
        str(Path(sys.executable).parent / "ansible-playbook"),
        "--inventory",
        str(inventory),
        "--extra-vars",
        json.dumps(
            {"provision_name": VM, "provision_namespace": namespace, "launcher_image_build_python": sys.executable}
        ),
        "virtops.kubevirt.quickstart",
        environment={
            "ANSIBLE_COLLECTIONS_PATH": str(linked_under(ROOT / ".cache/collections")),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "K8S_AUTH_KUBECONFIG": kubeconfig,
        },
    )


def launcher(kubectl: tuple[str, ...], namespace: str) -> str:
    """Return the name of the running launcher Pod."""
    selector = f"vmi.kubevirt.io/id={VM}"
    pods = json.loads(capture(*kubectl, "get", "pods", "-n", namespace, "-l", selector, "-o", "json"))["items"]
    alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
    if not alive:
        raise QuickstartError(f"{namespace}/{VM} has no running launcher; see kubectl describe vmi,pods -n {namespace}")
    return str(alive[0])


def show_console(kubectl: tuple[str, ...], namespace: str) -> None:
    """Print the guest's first lines. Wait for its marker if it is still booting."""
    pod = launcher(kubectl, namespace)
    print(f"\n==> The guest's console (kubectl logs {pod})", flush=True)
    command = [*kubectl, "logs", "-f", "-n", namespace, pod, "-c", "compute"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        after = None
        for line in process.stdout:
            if not line.startswith("{"):  # the supervisor's own lines are JSON
                print(f"    {line.rstrip()}", flush=True)
                after = CONSOLE_LINES if MARKER in line else after and after - 1
            if after == 0 or (after is not None and "counter 3" in line):
                break
        process.kill()
    if after is None:
        raise QuickstartError(f"the guest ended before it printed {MARKER!r}")


def show_accelerator(kubectl: tuple[str, ...], namespace: str) -> None:
    """Print whether the guest runs on KVM or under emulation, and why."""
    vmi = json.loads(capture(*kubectl, "get", "vmi", VM, "-n", namespace, "-o", "json"))
    emulated = [
        condition for condition in vmi["status"].get("conditions", []) if condition["type"] == "SoftwareEmulation"
    ]
    if emulated and emulated[0]["status"] == "True":
        reason = capture(sys.executable, str(ROOT / "roles/node_kvm/files/kvm_probe.py"))
        print("\n==> The guest runs on EMULATION (QEMU TCG), not on KVM: slow, and not an isolation boundary.")
        print(f"    Why: {json.loads(reason)['reason']}")
    else:
        print("\n==> The guest runs on KVM: the probe ran a vCPU on this node.")


def main() -> int:
    """Run all steps; return the exit code."""
    parser = argparse.ArgumentParser(prog="quickstart", description=__doc__.partition("\n")[0])
    parser.add_argument("--namespace", default="default", help="namespace of the first VM")
    namespace = parser.parse_args().namespace
    if problem := find_problem(namespace):
        print(f"quickstart: error: {problem}", file=sys.stderr)
        return 2
    lab = (sys.executable, "-m", "lab")
    kubectl = (*lab, "kubectl")
    started = time.monotonic()
    try:
        images = ("The images: control plane, launcher, a guest to try", sys.executable, "-m", "images", "build")
        with in_parallel_with(*images):  # downloads images while Go compiles
            step("A real Kubernetes on this machine: one node", *lab, "up", "--nodes", "1")
            make_namespace(kubectl, namespace)
        kubeconfig = capture(*lab, "kubeconfig").strip()
        deploy(lab, kubeconfig, namespace)
        show_console(kubectl, namespace)
        show_accelerator(kubectl, namespace)
        step("What Kubernetes says", *kubectl, "get", "vm,vmi,pods", "-n", namespace, "-o", "wide")
        timeline: Timeline = observe(json.loads(capture(*lab, "status", "--output", "json")), kubectl, namespace, VM)
        print("\n==> Where the time of this start went\n" + timeline.table(), flush=True)
    except (QuickstartError, subprocess.CalledProcessError) as error:
        print(f"quickstart: error: {error}", file=sys.stderr)
        return 1
    print(f"\nAll of it took {time.monotonic() - started:.0f} s. The lab stays up: export KUBECONFIG={kubeconfig}")
    print("Undo everything with: make clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
