# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last lines that a guest printed, for the error of a wait. Reading is best effort."""

from __future__ import annotations

import time
from typing import Any

from ..._client.api import Api
from ..._client.errors import VirtError
from .. import console_log

LINES = 20
CHARACTERS = 4096
SECONDS = 5.0
"""Time to read the lines of all guests of a wait. Those of the others are left out."""

Object = dict[str, Any]


class LastLines:
    """Reads the last lines of guests."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._deadline: float | None = None
        """By time.monotonic, from the first read on."""

    def of(self, instance: Object, launchers: list[Object]) -> list[str]:
        """Return the last lines of a guest; none if it printed nothing, has not run, or the log cannot be read."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + SECONDS
        if now >= self._deadline:
            return []
        try:
            seconds = self._deadline - now
            lines = console_log.read(self._api, instance, launchers, lines=LINES, timeout_seconds=seconds)
        except VirtError:
            return []
        return newest(lines)


def newest(lines: list[str]) -> list[str]:
    """Return the newest lines, at most CHARACTERS with their line breaks, without empty ones around them. Pure."""
    text = "\n".join(lines).strip()[-CHARACTERS:]
    return text.split("\n") if text else []


def message(error_message: str, lines: list[str]) -> str:
    """Return the message of an error with the last lines of the guest."""
    return "\n".join((f"{error_message}; the last lines on its console:", *lines))
