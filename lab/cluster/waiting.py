# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a state of the lab, and predicates of Ready nodes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

from lab.errors import ApiError, LabError
from lab.machines.machine import Machine

START_SECONDS = 90
"""Far more than any wait takes, even on a busy machine."""


def wait_until(what: str, is_so: Callable[[], bool], machine: Machine) -> None:
    """Poll every few milliseconds, because there is nothing to watch."""
    deadline = time.monotonic() + START_SECONDS
    last: ApiError | None = None
    while time.monotonic() < deadline:
        try:
            if is_so():
                return
        except ApiError as error:
            # Shortly after /readyz, kube-system and the built-in roles do not exist yet.
            if error.status not in (0, 403, 404) and error.status < 500:
                raise
            last = error
        time.sleep(0.03)
    because = f" (last answer: {last})" if last else ""
    raise LabError(
        f"waited {START_SECONDS} s for {what} on {machine.name}{because}; the logs in {machine.paths.logs} say why"
    )


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def is_renewed(lease: dict[str, Any], since: datetime.datetime) -> bool:
    renewed = lease.get("spec", {}).get("renewTime")
    return renewed is not None and datetime.datetime.fromisoformat(renewed) >= since
