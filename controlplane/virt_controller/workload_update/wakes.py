# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes workload updates: the KubeVirt's, one of a machine that is concerned, a migration's,
one of what is rolled out.

Many come at once, so they are gathered for a moment.
"""

from __future__ import annotations

from collections.abc import Callable

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.workload_update.concerned import Concerned
from controlplane.virt_controller.workload_update.roll_out import RollOut

GATHER_SECONDS = 2.0


def connect_workload_updates(
    *, kubevirts: Cache, migrations: Cache, concerned: Concerned, roll_out: RollOut, wake: Callable[[Key], None]
) -> None:
    """Subscribe. wake: shall come GATHER_SECONDS later."""

    def wake_all() -> None:
        for key in list(kubevirts.keys()):
            wake(key)

    def on_migration(_key: Key, _before: bytes | None, _after: bytes | None) -> None:
        if concerned():
            wake_all()

    concerned.wake_by(wake_all)
    roll_out.wake_by(wake_all)
    migrations.subscribe(on_migration)
    kubevirts.subscribe(lambda key, _before, _after: wake(key))
