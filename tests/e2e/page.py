# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page in a browser, as a user opens it: `kubectl proxy` and one address."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.cluster import Cluster

CHROMIUM = "/usr/bin/chromium"
ADDRESS = "/apis/subresources.kubevirt.io/v1/console/"
PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"
LIT = """
() => {
  const canvas = document.querySelector('.screen canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let lit = 0;
  for (let place = 0; place < data.length; place += 4) {
    lit += data[place] + data[place + 1] + data[place + 2] > 200 ? 1 : 0;
  }
  return lit;
}
"""
"""How many pixels of the guest's screen are not dark."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium of the distribution."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def proxy(cluster: Cluster, kubeconfig: Path) -> Iterator[str]:
    """Run `kubectl proxy` for a user. Yields the address of the page."""
    command = [cluster.program[0], "--kubeconfig", str(kubeconfig), "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://{process.stdout.readline().rpartition(' ')[2].strip()}{ADDRESS}"
        finally:
            process.terminate()


@contextmanager
def user(cluster: Cluster, name: str, role: str, folder: Path) -> Iterator[Path]:
    """Create a user with a role in namespace default. Yields a kubeconfig. The RoleBinding has the user's name."""
    account = {"name": name, "namespace": "default"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": account,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, binding)
    admin = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    token = cluster.kubectl("create", "token", name).strip()
    admin["users"] = [{"name": account["name"], "user": {"token": token}}]
    admin["contexts"][0]["context"]["user"] = account["name"]
    kubeconfig = folder / f"{name}.json"
    kubeconfig.write_text(json.dumps(admin))
    try:
        yield kubeconfig
    finally:
        cluster.kubectl("delete", "--ignore-not-found", f"rolebinding/{name}", f"serviceaccount/{name}")


def picture(page: Page, name: str) -> None:
    """Write a picture of the page for the guide, if UPDATE_PICTURES is set."""
    if os.environ.get("UPDATE_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png")
