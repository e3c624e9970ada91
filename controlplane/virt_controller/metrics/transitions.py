# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of how long VMIs and migrations took from phase to phase, by the timestamps in their status.

Timestamps are whole seconds: the metrics suit trends and percentiles over many starts, not a single start.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from prometheus_client import CollectorRegistry, Histogram

from controlplane.api.objects.migration import PHASES
from controlplane.api.objects.phase import is_final, is_known_phase
from controlplane.api.objects.resources import Key
from controlplane.api.timestamps import read_timestamp

BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 900, 1800, 3600)


class _Meta(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Entered(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    phase_transition_timestamp: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    phase_transition_timestamps: list[_Entered] = []


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: _Status = msgspec.field(default_factory=_Status)


_DECODER = msgspec.json.Decoder(_Object)


class Transitions:
    """It counts on the leader only, because every replica sees each change."""

    def __init__(self, registry: CollectorRegistry, is_leader: Callable[[], bool]) -> None:
        self._is_leader = is_leader
        self._between = Histogram(
            "kubevirt_vmi_phase_transition_time_seconds",
            "Histogram of VM phase transitions duration between different phases in seconds.",
            ("phase", "last_phase"),
            buckets=BUCKETS,
            registry=registry,
        )
        self._from_creation = Histogram(
            "kubevirt_vmi_phase_transition_time_from_creation_seconds",
            "Histogram of VM phase transitions duration from creation time in seconds.",
            ("phase",),
            buckets=BUCKETS,
            registry=registry,
        )
        self._from_deletion = Histogram(
            "kubevirt_vmi_phase_transition_time_from_deletion_seconds",
            "Histogram of VM phase transitions duration from deletion time in seconds.",
            ("phase",),
            buckets=BUCKETS,
            registry=registry,
        )

    def changed(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        """Count a change of a VMI. It subscribes to a cache."""
        changed = _read_change(before, after) if self._is_leader() else None
        if changed is None:
            return
        new, last = changed
        phase = new.status.phase
        if not is_known_phase(phase) or not is_known_phase(last):
            return
        entered = _entered(new, phase)
        created = read_timestamp(new.metadata.creation_timestamp)
        _count(self._between.labels(phase, last), _entered(new, last) if last else created, entered)
        _count(self._from_creation.labels(phase), created, entered)
        if is_final(phase) and new.metadata.deletion_timestamp:
            _count(self._from_deletion.labels(phase), read_timestamp(new.metadata.deletion_timestamp), entered)


class MigrationTransitions:
    """It counts on the leader only, because every replica sees each change."""

    def __init__(self, registry: CollectorRegistry, is_leader: Callable[[], bool]) -> None:
        self._is_leader = is_leader
        self._from_creation = Histogram(
            "kubevirt_vmi_migration_phase_transition_time_from_creation_seconds",
            "Histogram of VM migration phase transitions duration from creation time in seconds.",
            ("phase",),
            buckets=BUCKETS,
            registry=registry,
        )

    def changed(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        """Count a change of a migration. It subscribes to a cache."""
        changed = _read_change(before, after) if self._is_leader() else None
        if changed is None:
            return
        new, _last = changed
        if (phase := new.status.phase) in PHASES:
            created = read_timestamp(new.metadata.creation_timestamp)
            _count(self._from_creation.labels(phase), created, _entered(new, phase))


def _read_change(before: bytes | None, after: bytes | None) -> tuple[_Object, str] | None:
    """Return an object that has another phase now, and its former phase; None after any other change."""
    if before is None or after is None:
        return None
    try:
        old, new = _DECODER.decode(before), _DECODER.decode(after)
    except (msgspec.DecodeError, UnicodeError):
        return None
    if old.metadata.uid != new.metadata.uid or old.status.phase == new.status.phase:
        return None
    return new, old.status.phase


def _entered(obj: _Object, phase: str) -> float | None:
    stamps = (
        transition.phase_transition_timestamp
        for transition in obj.status.phase_transition_timestamps
        if transition.phase == phase
    )
    return read_timestamp(next(stamps, None))


def _count(histogram: Histogram, begun: float | None, ended: float | None) -> None:
    if begun is not None and ended is not None:
        histogram.observe(max(0.0, ended - begun))  # two hosts' clocks may differ
