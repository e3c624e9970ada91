# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one module as a user's Ansible runs it: a process, on localhost, against a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def run_module(kubeconfig: Path, collections: Path, module: str, *flags: str, **options: Any) -> Result:
    """Return the module's result, `failed` always in it. collections: a folder for ANSIBLE_COLLECTIONS_PATH.

    module: of this collection, unless its name says whose it is.
    """
    name = module if "." in module else f"virtops.kubevirt.{module}"
    program = str(Path(sys.executable).parent / "ansible")
    command = [program, "localhost", "-m", name, "-a", json.dumps(options), *flags]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_STDOUT_CALLBACK": "minimal",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "K8S_AUTH_KUBECONFIG": str(kubeconfig),
    }
    done = subprocess.run(command, env=environment, cwd=collections, capture_output=True, text=True, check=False)
    assert "=> {" in done.stdout, done.stdout + done.stderr
    found: Result = json.loads(done.stdout[done.stdout.index("=> {") + 3 :])
    return {**found, "failed": "FAILED!" in done.stdout}
