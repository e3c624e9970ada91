# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task that changes nothing loads: Ansible compiles all of it anew for each task and each item of a loop.

A file more in LOADED is paid for by everybody's second run; `python -m tests.bench ans-noop` says how much.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
LOADED = {
    "_client": "api argspec endpoint errors frame kubeconfig kubeconfig_shape parallel paths redact shapes transport",
    "_vm": "argspec batch cluster compare field_path keyed_lists manifest overlay present request service shape",
    "kubevirt_api": "condition_types names phases predicates run_strategies",
}
CONTEXT = {"current-context": "here", "contexts": [{"name": "here", "context": {"cluster": "here"}}]}
OPTIONS = {"name": "web", "namespace": "default", "run_strategy": "Halted", "spec": {"domain": {"devices": {}}}}
STORED = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web", "namespace": "default", "resourceVersion": "1"},
    "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
}


class Handler(BaseHTTPRequestHandler):
    """Has one machine."""

    def do_GET(self) -> None:
        body = json.dumps(STORED).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def test_a_task_that_changes_nothing_loads_what_it_runs_and_no_more(tmp_path: Path) -> None:
    package = tmp_path / "ansible_collections/virtops/kubevirt"
    package.parent.mkdir(parents=True)
    package.symlink_to(ROOT)
    with server() as url:
        config = {**CONTEXT, "clusters": [{"name": "here", "cluster": {"server": url}}]}
        (tmp_path / "config").write_text(json.dumps(config))
        (tmp_path / "arguments").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": OPTIONS}))
        command = [sys.executable, "-X", "importtime", "-m"]
        done = subprocess.run(
            [*command, "ansible_collections.virtops.kubevirt.plugins.modules.kubevirt_vm", "arguments"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "K8S_AUTH_KUBECONFIG": str(tmp_path / "config")},
            capture_output=True,
            text=True,
            check=False,
        )

    assert json.loads(done.stdout)["changed"] is False, done.stdout + done.stderr[-2000:]
    loaded = set(re.findall(r"plugins\.module_utils\.(\w+\.\w+)$", done.stderr, re.MULTILINE))
    assert loaded == {f"{folder}.{name}" for folder, files in LOADED.items() for name in files.split()}
