# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of one launcher, shared by the parts of its session. `changed` is called when the status changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controlplane.api.objects.pod import Pod
from controlplane.virt_handler.vmi.liveness import is_own
from controlplane.virt_handler.vmi.world import Expected, Launcher, LauncherStatus


class LauncherRecord:
    """The record of one launcher Pod. The registry keeps `pod` and `is_gone` up to date."""

    def __init__(self, pod: Pod, vmi_uid: str, changed: Callable[[], None]) -> None:
        self.pod = pod
        self.vmi_uid = vmi_uid
        self.is_gone = False
        self.status = LauncherStatus()
        self.expected: Expected | None = None
        self.changed = changed

    @property
    def is_over(self) -> bool:
        """The Pod has ended: none of its processes will listen again."""
        return self.is_gone or self.pod.is_over

    @property
    def has_own_domain(self) -> bool:
        """The last observed domain has the identity of this VMI and this Pod."""
        return is_own(self.launcher(), self.vmi_uid)

    @property
    def log_fields(self) -> dict[str, str]:
        return {"key": str(self.pod.vmi_key), "uid": self.vmi_uid, "pod": self.pod.metadata.name}

    def launcher(self) -> Launcher:
        """Return the launcher's current state."""
        return Launcher(self.pod, is_gone=self.is_gone, status=self.status, expected=self.expected)

    def publish(self, **changes: object) -> None:
        """Replace fields of the status."""
        self.replace(replace(self.status, **changes))  # type: ignore[arg-type]

    def replace(self, status: LauncherStatus) -> None:
        """Replace the status, and call `changed` if it differs."""
        if status != self.status:
            self.status = status
            self.changed()
