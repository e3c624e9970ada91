# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what processes remember: of answers, of absence, of time, of starts. Each must be found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from controlplane.api.objects.resources import Key
from controlplane.engine.expectations import Expectation, advance, read_stored
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.vmi import controller_state
from controlplane.virt_handler.node_recovery import orphans


def nothing_noted(*_unused: Any, **_also: Any) -> None:
    """Take no note of it."""


def whichever_comes_last(overlay: ReadYourWritesCache, key: Key, body: Any, *, least: int) -> None:
    """Take each answer for newer than the one before."""
    answer, held = read_stored(body), overlay._records.get(key) or Expectation(body["metadata"]["uid"])
    record = replace(held, answer=answer, until=max(held.until, answer.version, least))
    overlay._put(key, advance(record, overlay._cached(key), overlay._cache.resource_version))


@contextmanager
def without_memory(_unused: ReadYourWritesCache, __: Key) -> Iterator[frozenset[str]]:
    """Forget what was told while an answer was on its way."""
    yield frozenset()


def content(_unused: Any) -> Outcome:
    """Give a step up of which nothing comes."""
    return Outcome()


def never_passed(*_unused: Any) -> bool:
    """Take each state for newer than the one before."""
    return False


def of_whoever_has_the_name(memories: controller_state.ControllerState, vmi: Any) -> controller_state.VmiState:
    """Take a machine for the former one of its name."""
    key = Key(vmi.metadata.namespace, vmi.metadata.name)
    return memories._by_vmi.get(key) or _of(memories, vmi)


def down_while_it_is_started(seen: orphans.Seen) -> bool:
    """Take an orphan for down before its start has come to its end."""
    launcher = None if seen.launcher is None else replace(seen.launcher, operation="")
    return _is_down(replace(seen, launcher=launcher))


def since_now(_unused: Any, __: Key, monotonic: float) -> float:
    """Begin to wait for an orphan's VMI with each look."""
    return monotonic


_of = controller_state.ControllerState.of
_is_down = orphans._is_down
