# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a step for one object."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._client.errors import VirtError

Object = dict[str, Any]


class Outcome(NamedTuple):
    """The outcome for one object."""

    changed: bool
    method: str | None = None
    """The last request that changed something: create, apply, patch, replace, delete, or the name of an operation."""
    before: Object | None = None
    after: Object | None = None
    """The newest version of the object, None if it is gone."""
    old_instance_uid: str | None = None
    """UID of the instance that a restart replaces."""
    change: Any = None
    """The wait.rollout.Change that the machines of a pool still have to take over, or None."""


class Interrupted(Exception):
    """A step changed something and then failed."""

    def __init__(self, done: Outcome, error: VirtError) -> None:
        super().__init__(error.message)
        self.done = done
        self.error = error
