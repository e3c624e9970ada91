# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options in the bodies of subresource requests: parsed and validated, all problems at once. Pure.

An absent or empty body means defaults. Unknown fields are refused by name: the caller relies on an option that we would
ignore.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from controlplane.api import go_duration
from controlplane.api.admission.problem import excerpt
from controlplane.api.admission.validate.metadata import check_labels
from controlplane.links.handler import THAW_LIMIT_SECONDS, USUAL_THAW_SECONDS, Verb

Options = TypeVar("Options")

_NAME_LIMIT = 253
LABELS_LIMIT = 64

_POWER_FIELDS: Mapping[Verb, set[str]] = {"pause": {"dryRun"}, "unpause": {"dryRun"}, "freeze": {"unfreezeTimeout"}}


class BadOptionsError(Exception):
    """The body cannot be used (400). The text names every field that is wrong, and what it must be."""


@dataclass(frozen=True, slots=True)
class StartOptions:
    """How to start."""

    paused: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class StopOptions:
    """How to stop. grace_period: in seconds; None is the instance's own."""

    grace_period: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RestartOptions:
    """How to restart; grace_period is None (the instance's own) or 0 (at once)."""

    grace_period: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PowerOptions:
    """How to carry out a power verb. thaw_after: of freeze, in seconds; 0 is never by itself."""

    dry_run: bool = False
    thaw_after: int = 0


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """Labels that the target node must have, in addition to the VM's nodeSelector."""

    added_node_selector: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class EvacuationOptions:
    """The node whose evacuation is cancelled; "" is any."""

    node: str = ""
    dry_run: bool = False


def parse_start(body: bytes) -> StartOptions:
    """Read a StartOptions body. Raises BadOptionsError."""
    fields = _Fields(body, {"paused", "dryRun"})
    paused = fields.boolean("paused")
    return fields.checked(StartOptions(paused, fields.dry_run()))


def parse_stop(body: bytes) -> StopOptions:
    """Read a StopOptions body. Raises BadOptionsError."""
    fields = _Fields(body, {"gracePeriod", "dryRun"})
    return fields.checked(StopOptions(fields.seconds("gracePeriod"), fields.dry_run()))


def parse_restart(body: bytes) -> RestartOptions:
    """Read a RestartOptions body. Raises BadOptionsError."""
    fields = _Fields(body, {"gracePeriodSeconds", "dryRun"})
    grace = fields.seconds("gracePeriodSeconds")
    if grace:
        fields.problems.append("gracePeriodSeconds: must be 0 (at once) or absent (the guest's own time)")
    return fields.checked(RestartOptions(grace, fields.dry_run()))


def parse_migrate(body: bytes) -> MigrateOptions:
    """Read a MigrateOptions body. Raises BadOptionsError."""
    fields = _Fields(body, {"addedNodeSelector", "dryRun"})
    return fields.checked(MigrateOptions(fields.labels("addedNodeSelector"), fields.dry_run()))


def parse_power(verb: Verb, body: bytes) -> PowerOptions:
    """Read the body of a power verb. Raises BadOptionsError."""
    fields = _Fields(body, _POWER_FIELDS.get(verb, set()))
    thaw_after = fields.duration("unfreezeTimeout", THAW_LIMIT_SECONDS) if verb == "freeze" else 0
    return fields.checked(PowerOptions(fields.dry_run(), USUAL_THAW_SECONDS if thaw_after is None else thaw_after))


def parse_evacuation(body: bytes) -> EvacuationOptions:
    """Read the body of evacuate/cancel. Raises BadOptionsError."""
    fields = _Fields(body, {"evacuationNodeName", "dryRun"})
    return fields.checked(EvacuationOptions(fields.name("evacuationNodeName"), fields.dry_run()))


class _Fields:
    """A body's fields and what is wrong with them."""

    def __init__(self, body: bytes, allowed: set[str]) -> None:
        self.problems: list[str] = []
        self._fields = _object(body)
        for name in sorted(self._fields.keys() - allowed - {"kind", "apiVersion"}):
            self.problems.append(f"{name[:64]!r}: unknown option; known are {', '.join(sorted(allowed)) or 'none'}")

    def boolean(self, name: str) -> bool:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            self.problems.append(f"{name}: must be true or false, not {excerpt(value)}")
        return value is True

    def name(self, name: str) -> str:
        value = self._fields.get(name)
        if value is None or (isinstance(value, str) and len(value) <= _NAME_LIMIT):
            return value or ""
        self.problems.append(f"{name}: must be a name of at most {_NAME_LIMIT} characters, not {excerpt(value)}")
        return ""

    def labels(self, name: str) -> Mapping[str, str]:
        value = self._fields.get(name) or {}
        is_text = isinstance(value, dict) and all(isinstance(label, str) for label in value.values())
        if not is_text or len(value) > LABELS_LIMIT:
            self.problems.append(f"{name}: must be at most {LABELS_LIMIT} labels with their values as strings")
            return {}
        self.problems.extend(map(str, check_labels(value, name)))
        return value

    def seconds(self, name: str) -> int | None:
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 86400:
            self.problems.append(f"{name}: must be a whole number of seconds from 0 to 86400, not {excerpt(value)}")
            return None
        return value

    def duration(self, name: str, limit: int) -> int | None:
        """Read a Go duration as whole seconds, rounded up; None when it is absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        seconds = go_duration.seconds(value) if isinstance(value, str) else None
        if seconds is None or not 0 <= seconds <= limit:
            problem = f'must be a duration from "0s" to "{limit}s", e.g. "5m0s", not {excerpt(value)}'
            self.problems.append(f"{name}: {problem}")
            return None
        return math.ceil(seconds)

    def dry_run(self) -> bool:
        value = self._fields.get("dryRun")
        if value not in (None, [], ["All"]):
            self.problems.append(f'dryRun: must be absent or ["All"], not {excerpt(value)}')
        return bool(value)

    def checked(self, options: Options) -> Options:
        if self.problems:
            raise BadOptionsError("; ".join(self.problems))
        return options


def _object(body: bytes) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOptionsError(f"the body is not valid JSON: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadOptionsError(f"the body must be a JSON object, got {type(value).__name__}")
    return value
