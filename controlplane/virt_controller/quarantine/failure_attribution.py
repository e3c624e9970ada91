# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that failed on a node and started on another, as this process observed them. It decides nothing.

Only observed changes count: if a VMI already runs when the watch begins, it is unknown when it started. Every replica
observes, so the next leader has the same failures as the former one. The number of failures per node is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from kubevirt_api.phases import RUNNING, SCHEDULED

from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.status import FailedAttempt

MAX_FAILURES_PER_NODE = 64
_FIELD = b'"failedAttempts"'


@dataclass(frozen=True, slots=True)
class AttributedFailure:
    """A run that failed on a node and started elsewhere."""

    vmi: Key
    uid: str
    machine: str
    """Namespace and name of the VMI's owner, or of the VMI. A machine counts once, even if it is recreated."""
    reason: str
    at: float
    """When (monotonic) the run started elsewhere."""


class _Status(Struct, frozen=True, kw_only=True):
    phase: str = ""
    node_name: str = ""
    failed_attempts: tuple[FailedAttempt, ...] = ()


class _Instance(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Instance)


@dataclass(slots=True)
class FailureAttribution:
    changed: Callable[[], None] = lambda: None
    """Called when the failures change."""
    _by_node: dict[str, deque[AttributedFailure]] = field(default_factory=dict)

    def of(self, node: str) -> tuple[AttributedFailure, ...]:
        return tuple(self._by_node.get(node, ()))

    def forget(self, node: str) -> None:
        """Forget a node's failures: a guest has started there, or the node was judged."""
        if self._by_node.pop(node, None) is not None:
            self.changed()

    def note(self, before: bytes | None, after: bytes | None, monotonic: float) -> None:
        """Record a change of a VMI. Only the change to Running counts."""
        if before is None or after is None or not (self._by_node or _FIELD in after):
            return
        new = _decoder.decode(after)
        if new.status.phase != RUNNING or _decoder.decode(before).status.phase != SCHEDULED:
            return
        self.forget(new.status.node_name)
        for attempt in new.status.failed_attempts:
            if attempt.node_fault and attempt.node_name and attempt.node_name != new.status.node_name:
                self._attribute(attempt, new.metadata, monotonic)

    def _attribute(self, failed: FailedAttempt, meta: ObjectMeta, monotonic: float) -> None:
        owner = controller_of(meta)
        machine = f"{meta.namespace}/{meta.name if owner is None else owner.name}"
        failure = AttributedFailure(Key(meta.namespace, meta.name), meta.uid, machine, failed.reason, monotonic)
        self._by_node.setdefault(failed.node_name, deque(maxlen=MAX_FAILURES_PER_NODE)).append(failure)
        self.changed()
