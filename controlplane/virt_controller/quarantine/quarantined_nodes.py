# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that are quarantined now, for the builders of Pods."""

from __future__ import annotations

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.changes import meta_of


class QuarantinedNodes:
    """A callable that returns the current names."""

    def __init__(self, nodes: Cache) -> None:
        self._names: frozenset[str] = frozenset()
        nodes.subscribe(self._follow)

    def __call__(self) -> frozenset[str]:
        return self._names

    def _follow(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        is_quarantined = QUARANTINED in meta_of(after).labels
        if is_quarantined != (key.name in self._names):
            self._names = self._names | {key.name} if is_quarantined else self._names - {key.name}
