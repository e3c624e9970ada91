# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Poll in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watching(look: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call `look` every `seconds` from a thread, until the block ends."""
    ends = threading.Event()

    def run() -> None:
        while not ends.wait(seconds):
            look()

    thread = threading.Thread(target=run, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
