# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose virt-handler has another image than this control plane: the rollout has not reached them. No I/O.

virt-handler writes its image into an annotation of its Node. Its replacement ends the node's migrations, and a leader
of an older deployment would move VMIs back. The rollout does not wait for nodes that take no machines: they may be off
for ever.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevirt_api.names import CONTROL_PLANE_IMAGE, SCHEDULABLE

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache


class HandlerRollout:
    def __init__(self, nodes: Cache, image: str) -> None:
        """image: the image of this control plane, as the role sets it."""
        self._image = image
        self._others: dict[str, bool] = {}
        """Nodes with another virt-handler or none, and whether each takes machines."""
        self._enqueue: Callable[[], None] = lambda: None
        nodes.subscribe(self._changed)

    def enqueue_by(self, enqueue: Callable[[], None]) -> None:
        """Set the callback for changes of the result."""
        self._enqueue = enqueue

    @property
    def outdated_nodes(self) -> tuple[str, ...]:
        """Nodes that take machines and whose virt-handler is not updated."""
        return tuple(sorted(name for name, takes_machines in self._others.items() if takes_machines))

    def has_reached(self, node: str) -> bool:
        """Tell whether a node's virt-handler is updated."""
        return node not in self._others

    def _changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        before = self._others.get(key.name)
        self._keep(key.name, after)
        if self._others.get(key.name) != before:
            self._enqueue()

    def _keep(self, name: str, raw: bytes | None) -> None:
        self._others.pop(name, None)
        try:
            meta = None if raw is None else decode(raw, Node).metadata
        except DecodeError:  # its reconciler reports that
            return
        if meta is not None and meta.annotations.get(CONTROL_PLANE_IMAGE, "") != self._image:
            self._others[name] = meta.labels.get(SCHEDULABLE) == "true"
