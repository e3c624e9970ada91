# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task without a change imports: Ansible compiles all of it for each task and each item of a loop.

Every file in LOADED slows down each second run; `python -m tests.bench ans-noop` measures it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
import zipimport
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._client import Payload

ROOT = Path(__file__).resolve().parents[4]
LOADED = {
    "_client": "api argspec endpoint errors frame kubeconfig kubeconfig_shape objects paths redact shapes"
    " transport deadline",
    "_vm": "batch field_path kinds",
    "_vm.merge": "compare keyed_lists overlay",
    "_vm.request": "argspec manifest shape vm_request",
    "_vm.write": "ensure_state outcome update",
    "kubevirt_api": "desired names run_strategies",
}
COSTLY = {"asyncio", "concurrent.futures", "kubernetes", "queue", "urllib.request", "xml", "yaml"}
"""Expensive imports that ansible-core itself does not load. A kubeconfig in JSON, as here, needs no YAML."""
MODULE = "ansible_collections.virtops.kubevirt.plugins.modules.kubevirt_vm"
PLUGINS = "ansible_collections/virtops/kubevirt/plugins"
PACKAGES = [*(PLUGINS.rsplit("/", up)[0] for up in (3, 2, 1, 0)), f"{PLUGINS}/modules", f"{PLUGINS}/module_utils"]
COUNTED = """
import runpy, sys
say = lambda event, seen: event == "compile" and print("compiled", seen[1], file=sys.stderr)
sys.addaudithook(say)
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
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
        """Log nothing."""


@contextmanager
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def run(folder: Path, path: Path, *before: str) -> tuple[dict[str, Any], str]:
    """Run a task without a change, with the collection below a path; return its result and its standard error."""
    with server() as url:
        config = {**CONTEXT, "clusters": [{"name": "here", "cluster": {"server": url}}]}
        (folder / "config").write_text(json.dumps(config))
        (folder / "arguments").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": OPTIONS}))
        done = subprocess.run(
            [sys.executable, *before, MODULE, "arguments"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(path), "K8S_AUTH_KUBECONFIG": str(folder / "config")},
            capture_output=True,
            text=True,
            check=False,
        )
    return json.loads(done.stdout), done.stderr


def test_a_task_without_a_change_imports_only_what_it_runs(tmp_path: Path) -> None:
    package = tmp_path / "ansible_collections/virtops/kubevirt"
    package.parent.mkdir(parents=True)
    package.symlink_to(ROOT)

    result, errors = run(tmp_path, tmp_path, "-X", "importtime", "-m")

    assert result["changed"] is False, errors[-2000:]
    loaded = set(re.findall(r"plugins\.module_utils\.(\w+\.[\w.]+)$", errors, re.MULTILINE)) - LOADED.keys()
    assert loaded == {f"{folder}.{name}" for folder, files in LOADED.items() for name in files.split()}
    assert not COSTLY & set(re.findall(r"\| +(\S+)$", errors, re.MULTILINE))


def test_files_in_a_zip_are_compiled_once(tmp_path: Path) -> None:
    """Ansible sends a zip. Python's own zipimport compiles each file twice."""
    with zipfile.ZipFile(tmp_path / "payload.zip", "w") as payload:
        for path in (ROOT / "plugins").rglob("*.py"):
            payload.write(path, f"ansible_collections/virtops/kubevirt/{path.relative_to(ROOT)}")
        for folder in PACKAGES:
            payload.writestr(f"{folder}/__init__.py", "")

    result, errors = run(tmp_path, tmp_path / "payload.zip", "-c", COUNTED)

    assert result["changed"] is False, errors[-2000:]
    compiled = Counter(re.findall(r"^compiled .*/plugins/module_utils/(\w+/[\w/]+)\.py$", errors, re.MULTILINE))
    files = {f"{folder.replace('.', '/')}/{name}" for folder, names in LOADED.items() for name in names.split()}
    assert {file: times for file, times in compiled.items() if not file.endswith("__init__")} == dict.fromkeys(files, 1)


def test_a_file_in_a_zip_has_the_name_that_python_gives_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "payload.zip", "w") as payload:
        for file in ("one.py", "room/__init__.py", "room/two.py"):
            payload.writestr(file, "")

    for place, name in (("", "one"), ("", "room"), ("/room", "room.two")):
        archive = f"{tmp_path}/payload.zip{place}"
        assert Payload(archive).get_filename(name) == zipimport.zipimporter(archive).get_filename(name)


def test_files_outside_a_zip_are_imported_as_usual() -> None:
    assert Payload not in sys.path_hooks
