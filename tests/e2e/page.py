# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console page in a browser, as a user opens it: `kubectl proxy` and one address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
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


PROXIES = """
import asyncio, subprocess, sys


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def connect(path):
    async def connected(reader, writer):
        proxy = await asyncio.open_unix_connection(path)
        await asyncio.gather(copy(reader, proxy[1]), copy(proxy[0], writer))

    return connected


async def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for number, path in enumerate(sys.argv[1:]):
        await asyncio.start_server(connect(path), "127.0.0.1", 8001 + number)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
"""
"""Listens on a port for each `kubectl proxy`, from 8001 on, and connects to its socket."""


@contextmanager
def chromium(proxies: Sequence[Path]) -> Iterator[tuple[Browser, list[str]]]:
    """A headless Chromium of the distribution, and the addresses of the page through these sockets of `kubectl proxy`.

    It has a network of its own: Chromium ends all requests when the machine gets or loses a network interface, as with
    each Pod and each lab.
    """
    command = ["unshare", "--net", sys.executable, "-c", PROXIES, *map(str, proxies)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as network,
        tempfile.TemporaryDirectory() as directory,
    ):
        assert network.stdout is not None
        program = Path(directory) / "chromium"
        program.write_text(f'#!/bin/sh\nexec nsenter --net=/proc/{network.pid}/ns/net {CHROMIUM} "$@"\n')
        program.chmod(0o755)
        try:
            assert network.stdout.readline() == "ready\n"
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
                try:
                    yield browser, [f"http://127.0.0.1:{8001 + number}{ADDRESS}" for number in range(len(proxies))]
                finally:
                    browser.close()
        finally:
            network.terminate()


@contextmanager
def proxy(cluster: Cluster, kubeconfig: Path, socket: Path) -> Iterator[Path]:
    """Run `kubectl proxy` for a user, on a socket. Yields it."""
    command = [cluster.program[0], "--kubeconfig", str(kubeconfig), "proxy", f"--unix-socket={socket}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()  # it listens
            yield socket
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
    config = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    token = cluster.kubectl("create", "token", name).strip()
    config["users"] = [{"name": name, "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = name
    kubeconfig = folder / f"{name}.json"
    kubeconfig.write_text(json.dumps(config))
    try:
        yield kubeconfig
    finally:
        cluster.kubectl("delete", "--ignore-not-found", f"rolebinding/{name}", f"serviceaccount/{name}")


def picture(page: Page, name: str) -> None:
    """Write a picture of the page for the guide, if UPDATE_PICTURES is set."""
    if os.environ.get("UPDATE_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png")
