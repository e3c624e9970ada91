# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong in the lab: one error, whose text names what was tried, what was wrong and what to do."""

from __future__ import annotations


class LabError(Exception):
    """Something the lab needs is missing or refused; the text is for the person who typed the command."""


class ApiError(LabError):
    """The API server answered with something other than success; `status` is its HTTP code, 0 for no answer."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status
