# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration as users change it: whether guests may run without KVM. Changes reach every process at once."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import Key

RUN_TIMEOUT_SECONDS = 45
"""The time limit for a launcher's start after its Pod was scheduled."""
FURTHER_ATTEMPTS = 1
"""For failures caused by nodes; fewer than usual, so that runs use them up. Machines may set more, or none."""
KEY = Key("kubevirt", "kubevirt")
USUAL = KubeVirtConfiguration()
Callback = Callable[[Key, bytes | None, bytes | None], None]


class Configuration:
    """The configuration for reconcilers, and the notification of its changes."""

    def __init__(
        self,
        further_attempts: int = USUAL.further_attempts,
        migrations: MigrationConfiguration = USUAL.migrations,
    ) -> None:
        self._further_attempts = further_attempts
        self._migrations = migrations
        self._use_emulation = False
        self._callbacks: list[Callback] = []

    def __call__(self) -> KubeVirtConfiguration:
        developer = DeveloperConfiguration(use_emulation=self._use_emulation)
        return KubeVirtConfiguration(
            developer_configuration=developer,
            run_timeout_seconds=RUN_TIMEOUT_SECONDS,
            further_attempts=self._further_attempts,
            migrations=self._migrations,
        )

    def subscribe(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    def switch_emulation(self) -> str:
        before = self._raw()
        self._use_emulation = not self._use_emulation
        for callback in self._callbacks:
            callback(KEY, before, self._raw())
        return f"switch emulation {'on' if self._use_emulation else 'off'}"

    def _raw(self) -> bytes:
        return msgspec.json.encode({"spec": {"useEmulation": self._use_emulation}})
