# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""overlay: the cost of reads through few and through many responses that the cache has not confirmed yet.

No cluster. When many VMs start and the Pod watch lags, there is one pending response per VM, and every reconcile lists
the Pods of its VMI: if the cost of a read grew with the number of responses, the lag would feed itself.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from controlplane.api.objects.resources import POD, Key
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.kube.cache import Store

FEW, MANY = 10, 5000
MICROSECONDS_AT_MOST = 20.0
CALLS = 2000
ROUNDS = 7

Report = Callable[[dict[str, Any]], None]


def a_pod(number: int, version: int) -> dict[str, Any]:
    owner = {"uid": f"owner-{number}", "kind": "VirtualMachineInstance", "name": f"vm-{number}", "controller": True}
    meta = {
        "name": f"pod-{number}",
        "namespace": "bench",
        "uid": f"uid-{number}",
        "resourceVersion": str(version),
        "ownerReferences": [owner],
    }
    return {"metadata": meta, "spec": {"filling": "x" * 6000}}


def a_stage(outstanding: int) -> tuple[Store, ReadYourWritesCache]:
    """A cache that has everything but the newest response for each of `outstanding` Pods."""
    store = Store(POD)
    overlay = ReadYourWritesCache(store)
    for number in range(MANY):
        store.put(json.dumps(a_pod(number, number + 1)).encode())
    store.move(MANY)
    for number in range(outstanding):
        overlay.record_write(Key("bench", f"pod-{number}"), a_pod(number, 2 * MANY + number))
    return store, overlay


def microseconds(act: Callable[[int], object]) -> float:
    """Return the time of one call: the median of rounds."""
    rounds = []
    for _unused in range(ROUNDS):
        began = time.perf_counter()
        for number in range(CALLS):
            act(number)
        rounds.append((time.perf_counter() - began) / CALLS * 1e6)
    return statistics.median(rounds)


def run(report: Report) -> None:
    """Report microseconds per operation with few and with many pending responses, and their ratio.

    Raises AssertionError after the last report when the limit is exceeded.
    """
    looks: dict[int, float] = {}
    for outstanding in (FEW, MANY):
        cache = a_stage(outstanding)
        looks[outstanding] = microseconds(lambda number: cache[1].indexed("owner", f"owner-{number % FEW}"))  # noqa: B023
    report(
        {
            "name": "overlay-by-owner",
            "value": round(looks[MANY], 2),
            "unit": "us per look",
            "outstanding": MANY,
            "target": MICROSECONDS_AT_MOST,
            f"with_{FEW}": round(looks[FEW], 2),
            "ratio": round(looks[MANY] / looks[FEW], 2),
        }
    )
    store = a_stage(0)[0]
    report(
        {
            "name": "overlay-idle",
            "value": round(microseconds(lambda number: store.move(store.resource_version + 1)), 2),
            "unit": "us per move of the position, nothing outstanding",
        }
    )
    store = a_stage(MANY)[0]
    began = time.perf_counter()
    store.move(3 * MANY)
    ended = (time.perf_counter() - began) / MANY * 1e6
    report({"name": "overlay-end", "value": round(ended, 2), "unit": "us per response that ends unconfirmed"})
    if looks[MANY] > MICROSECONDS_AT_MOST:
        raise AssertionError(f"{looks[MANY]:.2f} us per look with {MANY} unconfirmed responses")
