# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines for the person who waits. A library caller may pass a function of its own, or `silent`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Progress = Callable[[str], None]

_began = time.monotonic()


def to_stderr(text: str) -> None:
    print(f"lab: {time.monotonic() - _began:6.1f} s  {text}", file=sys.stderr, flush=True)


def silent(text: str) -> None:
    """Say nothing."""
