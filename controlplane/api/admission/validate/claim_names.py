# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about names that no claim can have. Not an error, as in a Pod: the machine waits for the claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.paths import list_at, value_at
from controlplane.api.admission.problem import below, excerpt
from controlplane.api.schema.bounds import SUBDOMAIN
from controlplane.api.schema.patterns import matches

_NAMES = (("persistentVolumeClaim", "claimName"), ("dataVolume", "name"))


def warn_of_claim_names(machine: Any, path: str) -> Iterator[str]:
    """Yield a warning for each claim that cannot exist. machine: the spec of an instance, not validated."""
    for index, volume in enumerate(list_at(machine, "volumes")):
        for source, field in _NAMES:
            name = value_at(volume, source, field)
            if isinstance(name, str) and name and not matches(SUBDOMAIN, name):
                where = below(below(below(below(path, "volumes"), index), source), field)
                yield (
                    f"{where}: no claim can be called {excerpt(name)}, so the machine will wait; "
                    "correct the name: it has lower-case letters, digits, '-' and '.'"
                )
