# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's clock."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, children, element


@element
class Timer:
    """One time source."""

    TAG: ClassVar[str] = "timer"
    name: str = attribute()
    present: bool | None = attribute(default=None)
    tick_policy: str | None = attribute("tickpolicy", default=None)
    track: str | None = attribute(default=None)


@element
class Clock:
    """The guest's initial time and its timers."""

    TAG: ClassVar[str] = "clock"
    offset: str = attribute()
    adjustment: str | None = attribute(default=None)
    timezone: str | None = attribute(default=None)
    timers: tuple[Timer, ...] = children(default=())
