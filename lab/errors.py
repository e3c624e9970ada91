# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of the lab. The text names the attempt, the problem and the remedy."""

from __future__ import annotations


class LabError(Exception):
    """A requirement of the lab is missing or refused. The text is for the user of the command."""


class ApiError(LabError):
    """The API server refused a request. `status` is its HTTP code, 0 without a response."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status
