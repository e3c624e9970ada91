# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The failure of a simulation or a property: an invariant that does not hold."""

from __future__ import annotations


class Breach(AssertionError):
    """An invariant does not hold. The text names it."""
