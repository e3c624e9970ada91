# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that are being deleted: wait until their names are free, and say what they wait for."""

from __future__ import annotations

import time
from typing import Any

from ..._client.api import Api, Resource
from ..._client.errors import REASON_LIMIT, TimedOut, cut
from ..._client.waiter import Verdict, Waiter
from ...kubevirt_api.desired import is_deleting

Object = dict[str, Any]


def deletion(obj: Object | None) -> str | None:
    """Return since when an object is being deleted, and its finalizers. None if it is not being deleted. Pure."""
    if obj is None or not is_deleting(obj):
        return None
    finalizers = ", ".join(map(str, obj["metadata"].get("finalizers") or ()))
    text = f"it waits for its finalizers: {finalizers}" if finalizers else "it has no finalizers"
    return cut(f"it is being deleted since {obj['metadata']['deletionTimestamp']}; {text}", REASON_LIMIT)


def wait_until_gone(api: Api, resource: Resource, live: Object, seconds: float) -> None:
    """Wait until the object is gone, also in a task that does not wait for its own object. Raises TimedOut."""
    name = live["metadata"]["name"]

    def judge(_name: str, obj: Object | None) -> Verdict:
        return Verdict(done=obj is None or obj["metadata"].get("uid") != live["metadata"].get("uid"))

    reached = Waiter(api, resource, judge, deadline=time.monotonic() + seconds).until([name])[name]
    if reached.verdict.done:
        return
    reason = reached.trouble or deletion(reached.obj) or "it still exists"
    raise TimedOut(
        f"{resource.title(name)} cannot be created after {seconds:g} s, because the former one of its name is not gone:"
        f" {reason}; run the task again, or give it more time (wait_timeout)",
        reason=reason,
    )
