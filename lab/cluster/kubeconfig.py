# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render kubeconfigs as JSON, which is valid YAML. Certificates are embedded, so one file is enough."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path


def render_kubeconfig(*, name: str, server: str, certificates: Path, client: str) -> str:
    def embed(file: str) -> str:
        return base64.b64encode((certificates / file).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": embed("ca.crt")}
    user = {"client-certificate-data": embed(f"{client}.crt"), "client-key-data": embed(f"{client}.key")}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        },
        indent=1,
    )


def render_webhook_users(certificates: Path, client: str) -> str:
    """Render the kubeconfig with which an API server authenticates to webhooks, to all of them as one client."""
    user = {
        "client-certificate": str(certificates / f"{client}.crt"),
        "client-key": str(certificates / f"{client}.key"),
    }
    return json.dumps({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]})


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, unless it has this text already."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)
