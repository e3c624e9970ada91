# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All playbooks with another ansible-core: python -m tests.e2e.story --ansible-core 2.18 [...].

The built tarball is installed by that version's ansible-galaxy; then deploy, provision, both again (no changes),
upgrade, a removal that is refused because of the VM, one that is not. Variables are texts, as users type them with -e:
Ansible takes `-e x=false` for the text "false". Each version has its own lab, deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from lab import Lab
from lab.cluster.inventory import render_inventory
from tests import environments
from tests.sanity.importer import build

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = (
    "control_plane_use_emulation=true",
    "control_plane_replicas=1",
    "control_plane_wait_timeout=300",
    f"launcher_image_build_python={sys.executable}",
)
MACHINE = ("provision_name=story", "provision_namespace=default", f"launcher_image_build_python={sys.executable}")
AN_OLDER_VERSION = "app.kubernetes.io/version=0.0.9"


class StoryError(Exception):
    """A step had the wrong result; the text says which."""


@dataclass(frozen=True)
class Ansible:
    """One version of Ansible with the collection installed, and one lab."""

    programs: Path
    collections: Path
    inventory: Path
    kubeconfig: Path

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs; return its output."""
        environment = {
            **os.environ,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_INJECT_FACT_VARS": "false",
            "K8S_AUTH_KUBECONFIG": str(self.kubeconfig),
        }
        return subprocess.run(
            [str(self.programs / name), *arguments],
            cwd=self.collections,  # outside the checkout, so that Ansible does not find its files
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def play(self, playbook: str, *variables: str, fails_with: str = "") -> int:
        """Run a playbook of the collection; return the number of changed tasks."""
        words = [word for variable in variables for word in ("-e", variable)]
        started = time.monotonic()
        done = self.run("ansible-playbook", "-i", str(self.inventory), f"virtops.kubevirt.{playbook}", *words)
        changed = sum(map(int, re.findall(r"changed=(\d+)", done.stdout)))
        print(
            f"  {playbook}: exit {done.returncode}, changed={changed}, {time.monotonic() - started:.0f} s", flush=True
        )
        if (done.returncode != 0) != bool(fails_with) or fails_with not in done.stdout:
            raise StoryError(f"{playbook}: {done.stdout[-6000:]}")
        return changed

    def ask(self, module: str, **options: str) -> dict[str, object]:
        """Run a module of the collection; return its result."""
        name = f"virtops.kubevirt.{module}"
        arguments = ["-a", json.dumps(options)] if options else []  # 2.17 takes empty braces for a text
        done = self.run("ansible", "localhost", "-o", "-m", name, *arguments)
        if "SUCCESS => " not in done.stdout:
            raise StoryError(f"{module}: {done.stdout}")
        result: dict[str, object] = json.JSONDecoder().raw_decode(done.stdout.partition("SUCCESS => ")[2])[0]
        return result


def expect(is_so: bool, what: str) -> None:
    """Raise StoryError unless a condition holds."""
    if not is_so:
        raise StoryError(what)
    print(f"  {what}", flush=True)


def is_running(ansible: Ansible) -> bool:
    """Whether the VM runs."""
    instances = ansible.ask("kubevirt_vmi_info", name="story", namespace="default")["resources"]
    return isinstance(instances, list) and [vmi["status"]["phase"] for vmi in instances] == ["Running"]


def run_steps(ansible: Ansible, lab: Lab) -> None:
    """Run all steps."""
    ansible.play("deploy", *DEPLOY)
    ansible.play("provision", *MACHINE)
    expect(is_running(ansible), "the VM runs")
    expect(ansible.play("deploy", *DEPLOY) == 0, "a second deploy changes nothing")
    expect(ansible.play("provision", *MACHINE) == 0, "a second provision changes nothing")

    label = ["label", "--overwrite", "crd", "kubevirts.kubevirt.io", AN_OLDER_VERSION]
    command = [sys.executable, "-m", "lab", "kubectl", "--name", lab.name, *label]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    expect(ansible.play("deploy", *DEPLOY, "control_plane_network_policies=false") > 0, "the upgrade changes objects")
    expect(ansible.ask("kubevirt_control_plane_info")["version"] != "0.0.9", "it is the collection's version again")
    expect(is_running(ansible), "the VM runs on")

    ansible.play("remove", "control_plane_remove_with_workloads=false", fails_with="default/story")
    expect(is_running(ansible), "a refused removal leaves the VM")
    ansible.play("remove", "control_plane_remove_with_workloads=true")
    remaining = ansible.ask("kubevirt_control_plane_info")
    leftovers = (remaining["owner"], remaining["made"], remaining["node_patches"])
    expect(leftovers == ("none", [], []), "a removal with VMs leaves nothing")


def run(version: str) -> None:
    """Run the steps with one version of ansible-core, or with the pinned one."""
    pinned = version == "pinned"
    programs = Path(sys.executable).parent if pinned else environments.make(f"ansible-core-{version}") / "bin"
    lab = Lab(f"story-{version.replace('.', '-')}")
    with tempfile.TemporaryDirectory(prefix="virtops-story-") as directory, lab.running(1):
        folder = Path(directory)
        inventory = folder / "inventory.yml"
        inventory.write_text(render_inventory(lab))
        ansible = Ansible(programs, folder, inventory, lab.kubeconfig)
        words = ("collection", "install", "--offline", "--no-deps", "-p", str(folder), str(build(folder)))
        installed = ansible.run("ansible-galaxy", *words)
        if installed.returncode:
            raise StoryError(installed.stdout)
        print(f"story: {ansible.run('ansible', '--version').stdout.partition(chr(10))[0]}", flush=True)
        run_steps(ansible, lab)


def main() -> int:
    """Run the named versions, or all; the exit code is 0 when all passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.story", description=__doc__.partition("\n")[0])
    versions = ["pinned", *environments.ansible_cores()]
    parser.add_argument("--ansible-core", action="append", choices=versions, help="a version; all of them by default")
    failed = []
    for version in parser.parse_args().ansible_core or versions:
        try:
            run(version)
        except StoryError as error:
            print(f"story: ansible-core {version}: {error}", file=sys.stderr, flush=True)
            failed.append(version)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
