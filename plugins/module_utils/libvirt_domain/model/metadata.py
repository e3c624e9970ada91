# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our metadata in a domain. It identifies the domain after a restart. libvirt stores it unchanged."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element
from ..namespace import NAMESPACE


@element
class Identity:
    """The VMI, its Pod, and the number of the launch (epoch)."""

    TAG: ClassVar[str] = f"{{{NAMESPACE}}}vmi"
    namespace: str = attribute()
    name: str = attribute()
    uid: str = attribute()
    pod_uid: str = attribute("pod")
    epoch: int = attribute()
    grace_period_seconds: int = attribute("grace")


@element
class Metadata:
    """libvirt's element for metadata of applications."""

    TAG: ClassVar[str] = "metadata"
    identity: Identity = child()
