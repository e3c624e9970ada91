# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one module against a cluster, as a process of its own.

A module of this collection runs as Ansible runs it on a host, but without ansible's command line, which takes five
times as long as the module. `tests/integration/targets` and the Molecule scenarios run modules by ansible-playbook.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Result = dict[str, Any]
MODES = {"--check": "_ansible_check_mode", "--diff": "_ansible_diff"}


def run_module(kubeconfig: Path, collections: Path, module: str, *flags: str, **options: Any) -> Result:
    """Return the module's result, always with `failed`.

    collections: a folder for ANSIBLE_COLLECTIONS_PATH. module: of this collection, unless its name has a dot. flags:
    `--check` and `--diff`.
    """
    environment = {**os.environ, "K8S_AUTH_KUBECONFIG": str(kubeconfig)}
    if "." in module:
        return _by_ansible(collections, environment, module, *flags, **options)
    arguments = {**options, **{MODES[flag]: True for flag in flags}}
    done = subprocess.run(
        [sys.executable, "-m", f"ansible_collections.virtops.kubevirt.plugins.modules.{module}"],
        env={**environment, "PYTHONPATH": str(collections)},
        cwd=collections,
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("\n{"), done.stdout + done.stderr
    result: Result = json.loads(done.stdout)
    result.pop("invocation", None)
    result.pop("warnings", None)  # structured here, text on stderr by ansible's command line
    return {**result, "failed": result.get("failed", False)}


def _by_ansible(collections: Path, environment: dict[str, str], module: str, *flags: str, **options: Any) -> Result:
    program = str(Path(sys.executable).parent / "ansible")
    done = subprocess.run(
        [program, "localhost", "-m", module, "-a", json.dumps(options), *flags],
        env={
            **environment,
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_STDOUT_CALLBACK": "minimal",
            "ANSIBLE_LOCALHOST_WARNING": "false",
        },
        cwd=collections,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "=> {" in done.stdout, done.stdout + done.stderr
    result: Result = json.loads(done.stdout[done.stdout.index("=> {") + 3 :])
    return {**result, "failed": "FAILED!" in done.stdout}
