# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small devices."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element, text
from .disk import Alias


@element
class Controller:
    """A bus."""

    TAG: ClassVar[str] = "controller"
    type: str = attribute()
    index: int = attribute()
    model: str = attribute()


@element
class RngBackend:
    """The host's source of randomness."""

    TAG: ClassVar[str] = "backend"
    model: str = attribute()
    source: str = text()


@element
class Rng:
    """A source of randomness."""

    TAG: ClassVar[str] = "rng"
    model: str = attribute()
    backend: RngBackend = child()


@element
class BalloonStatistics:
    """How often libvirt asks the guest's balloon driver for its counters, in seconds."""

    TAG: ClassVar[str] = "stats"
    period: int = attribute()


@element
class MemoryBalloon:
    """The memory balloon; model "none" leaves it out."""

    TAG: ClassVar[str] = "memballoon"
    model: str = attribute()
    free_page_reporting: bool | None = attribute("freePageReporting", words=("on", "off"), default=None)
    statistics: BalloonStatistics | None = child(default=None)


@element
class Watchdog:
    """A watchdog, and the action when it expires."""

    TAG: ClassVar[str] = "watchdog"
    model: str = attribute()
    action: str = attribute()
    alias: Alias = child()


@element
class Panic:
    """The device by which a guest's kernel reports a panic."""

    TAG: ClassVar[str] = "panic"
    model: str = attribute()
