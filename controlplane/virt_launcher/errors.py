# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a launcher cannot prepare a guest."""

from __future__ import annotations


class PreparationError(Exception):
    """A volume cannot be attached. reason: in CamelCase. The text goes to the termination log, for users."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
