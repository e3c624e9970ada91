# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about unknown time zones. Not an error: the launcher's time zones may be newer than ours.

QEMU takes an unknown one for UTC without an error, so the guest's clock is wrong by some hours.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from controlplane.api.admission.paths import value_at
from controlplane.api.admission.problem import excerpt

_SAMPLE = "Europe/London"
"""If it is unknown, this installation has no time zones, and none is warned of."""
_LONGEST = 64


def warn_of_time_zone(machine: Any, path: str) -> Iterator[str]:
    """Yield a warning for an unknown time zone. machine: the spec of an instance, not validated."""
    zone = value_at(machine, "domain", "clock", "timezone")
    if isinstance(zone, str) and 0 < len(zone) <= _LONGEST and not _is_known(zone) and _is_known(_SAMPLE):
        yield (
            f"{path}.domain.clock.timezone: {excerpt(zone)} is no time zone of the tz database, and the guest's clock "
            "will probably start at UTC; write e.g. Europe/Berlin"
        )


@lru_cache(maxsize=256)
def _is_known(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown; not a name; a directory of zones
        return False
    return True
