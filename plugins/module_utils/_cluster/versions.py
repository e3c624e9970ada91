# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide from what servers and nodes say of themselves what the cluster can do. Pure.

Which version is old enough to refuse is the role's to say; here are the versions of programs that are not Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

IMAGE_VOLUMES = {"containerd": (2, 1), "cri-o": (1, 31)}
"""The first versions of runtimes that can mount an image as a volume."""


def release(text: str) -> str | None:
    """Return the release in a version as clusters write it (v1.36.3-eks-1, v1.36.3+k3s1); None when there is none."""
    found = re.match(r"v?(\d+\.\d+\.\d+)", text)
    return found[1] if found else None


def without_image_volumes(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the nodes whose container runtime is too old for image volumes, with it.

    A runtime that is not known here may do as it likes: only trying tells.
    """
    found = []
    for node in nodes:
        said = ((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion") or ""
        name, _separator, version = said.partition("://")
        floor, has = IMAGE_VOLUMES.get(name), release(version)
        if floor and has and tuple(int(part) for part in has.split(".")) < floor:
            found.append(f"{node['metadata']['name']} ({name} {has})")
    return sorted(found)
