# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases in version strings of the API server, kubelets and container runtimes. Pure."""

from __future__ import annotations

import re


def release(text: str) -> str | None:
    """Return the release in a cluster's version (v1.36.3-eks-1, v1.36.3+k3s1), None if the text has none."""
    match = re.match(r"v?(\d+\.\d+\.\d+)", text)
    return match[1] if match else None


def parse(release: str) -> tuple[int, ...]:
    """Return a release as numbers."""
    return tuple(int(part) for part in release.split("."))
