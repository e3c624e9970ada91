# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several calls in parallel, each over its own connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .api import Api
from .errors import VirtError

WORKERS = 8
"""Connections at the same time. The API server's fair queueing would delay more of them."""


def in_parallel(api: Api, count: int, work: Callable[[Api, int], Any], *, workers: int | None = None) -> list[Any]:
    """Call work(own api, index) for each index, in parallel. The result of a failed call is its error."""
    results: list[Any] = [None] * count
    indices = iter(range(count))

    def worker(thread_api: Api) -> None:
        for index in indices:  # next() of a range iterator is atomic
            try:
                results[index] = work(thread_api, index)
            except VirtError as error:
                results[index] = error

    if count == 1:
        worker(api)
        return results
    import threading

    clones = [api.clone() for _unused in range(min(workers or WORKERS, count) - 1)]
    threads = [threading.Thread(target=worker, args=(thread_api,), daemon=True) for thread_api in clones]
    for thread in threads:
        thread.start()
    worker(api)
    for thread in threads:
        thread.join()
    for thread_api in clones:
        thread_api.close()
    return results
