# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A canary in every option with a secret, and a playbook at the highest verbosity: its output has no canary."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.collection import linked_under
from tests.unit.plugins.module_utils.fake_api import World, serving

pytestmark = pytest.mark.component

CANARY = "canary-5d307ca9"
ENCODED = base64.b64encode(CANARY.encode()).decode()


def a_volume(**data: str) -> dict[str, Any]:
    return {"domain": {"devices": {}}, "volumes": [{"name": "seed", "cloudInitNoCloud": data}]}


def kubeconfig(server: str) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": CANARY}}],
    }


def tasks(server: str) -> list[dict[str, Any]]:
    """Return tasks that succeed and tasks that fail wherever arguments may be echoed."""
    here = {"host": server, "namespace": "default"}
    options: list[dict[str, Any]] = [
        {**here, "name": "a", "api_key": CANARY, "cloud_init": {"user_data": CANARY, "network_data": CANARY}},
        {**here, "name": "a", "cloud_init": {"user_data": "another value"}},
        {"kubeconfig": kubeconfig(server), "namespace": "default", "name": "b", "spec": a_volume(userData=CANARY)},
        {**here, "name": "c", "definition": {"spec": {"template": {"spec": a_volume(userDataBase64=ENCODED)}}}},
        {**here, "vms": [{"name": "d", "cloud_init": {"user_data": CANARY}}, {"name": "d", "image": "x"}]},
        {**here, "name": "e", "user_date": CANARY},
        {**here, "name": "e", "spec": "{" + CANARY},
        {**here, "name": "e", "spec": a_volume(userData=CANARY), "volumes": [{"no": "name"}]},
        {**here, "name": "e", "definition": {"spec": {"colour": 1, "template": {"spec": a_volume(userData=CANARY)}}}},
    ]
    read = {"name": "Read", "virtops.kubevirt.kubevirt_vm_info": here}
    tries = [("kubevirt_vm", item) for item in options]
    first, second = ({**here, "name": "f", "cloud_init": {"user_data": f"{CANARY}-{item}"}} for item in (1, 2))
    tries += [("kubevirt_vmi", item) for item in (first, second, {**second, "force": True})]
    tries += [("kubevirt_replicaset", {**item, "labels": {"app": "f"}}) for item in (first, second)]
    return [*({"name": "Try", f"virtops.kubevirt.{name}": item, "ignore_errors": True} for name, item in tries), read]


def test_no_secret_is_printed_at_any_verbosity(tmp_path: Path) -> None:
    with serving(World()) as server:
        play = tmp_path / "play.yml"
        play.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks(server)}]))
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), str(play), "--diff", "-vvvv"],
            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(linked_under(tmp_path))},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed[-3000:]
    assert "ignored=6" in printed, printed[-3000:]
    assert [line for line in printed.splitlines() if CANARY in line or ENCODED in line] == []
    assert "(changed)" in printed, "a diff tells that a secret changed"
    assert "Traceback" not in printed
