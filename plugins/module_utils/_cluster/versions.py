# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the versions of the API server and the container runtimes support. Pure.

The role decides which Kubernetes version is too old. This file knows the versions of other programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

IMAGE_VOLUMES = {"containerd": (2, 1), "cri-o": (1, 31)}
"""The first versions of runtimes that can mount an image as a volume."""


def release(text: str) -> str | None:
    """Return the release in a cluster's version (v1.36.3-eks-1, v1.36.3+k3s1), None if the text has none."""
    match = re.match(r"v?(\d+\.\d+\.\d+)", text)
    return match[1] if match else None


def parse(release: str) -> tuple[int, ...]:
    """Return a release as numbers."""
    return tuple(int(part) for part in release.split("."))


def without_image_volumes(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the nodes whose container runtime is too old for image volumes, each with its runtime.

    Unknown runtimes are accepted.
    """
    too_old = []
    for node in nodes:
        runtime = ((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion") or ""
        name, _separator, version = runtime.partition("://")
        floor, installed = IMAGE_VOLUMES.get(name), release(version)
        if floor and installed and parse(installed) < floor:
            too_old.append(f"{node['metadata']['name']} ({name} {installed})")
    return sorted(too_old)
