# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credential plugins run by the kubernetes library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import kubeconfig
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument

pytest.importorskip("kubernetes")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def a_config(command: str) -> dict[str, Any]:
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://s"}}],
        "users": [{"name": "u", "user": {"exec": run}}],
    }


def a_plugin(tmp_path: Path, answer: str) -> str:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{answer}\nE\n")
    path.chmod(0o700)
    return str(path)


def test_token_of_an_exec_plugin_is_used(tmp_path: Path) -> None:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-plugin"}
    }  # fmt: skip
    config = a_config(a_plugin(tmp_path, json.dumps(answer)))
    assert kubeconfig.read(config)["token"] == "from-plugin"
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    assert kubeconfig.read(str(path))["token"] == "from-plugin"


def test_a_plugin_without_a_token_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="its credential plugin"):
        kubeconfig.read(a_config(a_plugin(tmp_path, "nonsense")))


def test_the_error_of_a_plugin_is_reported_in_one_line(tmp_path: Path) -> None:
    """The library writes it only to its log; the task said that there are no credentials, and not why."""
    path = tmp_path / "plugin"
    path.write_text("#!/bin/sh\necho 'your session\nhas ended' >&2\nexit 3\n")
    path.chmod(0o700)
    with pytest.raises(BadArgument) as caught:
        kubeconfig.read(a_config(str(path)))
    message = "gave no credentials (exec: process returned 3. your session has ended); run it by hand"
    assert message in caught.value.message


def test_the_reported_error_of_a_plugin_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "plugin"
    path.write_text("#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x >&2\nexit 3\n")
    path.chmod(0o700)
    with pytest.raises(BadArgument) as caught:
        kubeconfig.read(a_config(str(path)))
    assert len(caught.value.message) < 500
