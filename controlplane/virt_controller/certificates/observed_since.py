# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long this process has observed no change of a value. Other processes observe a change within seconds."""

from __future__ import annotations

import math
from dataclasses import replace

from controlplane.virt_controller.certificates.decide import World


class ObservedSince:
    """Values by name, and when (monotonic seconds) they last changed. A value without an observed change is infinitely
    old.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[object, float]] = {}

    def seconds(self, name: str, value: object, monotonic: float) -> float:
        last, since = self._since.setdefault(name, (value, -math.inf))
        if last != value:
            since = monotonic
            self._since[name] = (value, since)
        return monotonic - since


def with_ages(world: World, observed_since: ObservedSince, monotonic: float) -> World:
    """Add to a world how long its CA, its bundles and each of its pairs have not changed."""
    bundles = tuple((verifier.resource, verifier.key, verifier.bundles) for verifier in world.trusting)
    pairs = tuple(
        replace(issued, used_for=observed_since.seconds(str(issued.secret.key), issued.secret.pair, monotonic))
        for issued in world.pairs
    )
    return replace(
        world,
        authority_for=observed_since.seconds("authority", world.authority.pair, monotonic),
        bundles_for=observed_since.seconds("bundles", bundles, monotonic),
        pairs=pairs,
    )
