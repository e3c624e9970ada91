# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All warnings about a machine: what is accepted and probably not meant. machine: a spec, not validated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.validate.claim_names import warn_of_claim_names
from controlplane.api.admission.validate.serials import warn_of_serials
from controlplane.api.admission.validate.time_zones import warn_of_time_zone


def warn_of_machine(machine: Any, path: str) -> Iterator[str]:
    """Yield each warning. path: of the machine's spec."""
    yield from warn_of_claim_names(machine, path)
    yield from warn_of_serials(machine, path)
    yield from warn_of_time_zone(machine, path)
