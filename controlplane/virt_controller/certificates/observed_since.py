# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long things have stood still, as this process has seen. Everybody else learns of a change within seconds."""

from __future__ import annotations

import math
from dataclasses import replace

from controlplane.virt_controller.certificates.decide import World


class ObservedSince:
    """Remembers values and when (monotonic) they changed. What never changed before our eyes has stood for ever."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[object, float]] = {}

    def seconds(self, name: str, value: object, monotonic: float) -> float:
        known, since = self._since.setdefault(name, (value, -math.inf))
        if known != value:
            since = monotonic
            self._since[name] = (value, since)
        return monotonic - since


def with_ages(world: World, standing: ObservedSince, monotonic: float) -> World:
    """Add to a world how long its authority, its bundles and each of its pairs have been what they are."""
    bundles = tuple((verifier.resource, verifier.key, verifier.bundles) for verifier in world.trusting)
    pairs = tuple(
        replace(issued, used_for=standing.seconds(str(issued.held.key), issued.held.pair, monotonic))
        for issued in world.pairs
    )
    return replace(
        world,
        authority_for=standing.seconds("authority", world.authority.pair, monotonic),
        bundles_for=standing.seconds("bundles", bundles, monotonic),
        pairs=pairs,
    )
