# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller must give up a launcher that does not start within its time.

As handler_duties for virt-handler: the time by the clock of the observing process. It shares no code with the
reconcilers.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevirt_api.names import RUN_TIMEOUT

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.simulation.configuration import RUN_TIMEOUT_SECONDS
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.last_words import LastWords
from tests.controlplane.simulation.ledger import controlling_uid
from tests.support.clock import WrongClock
from tests.support.store import OVER, Json

BEFORE = ("", "Pending", "Scheduling")
Seen = Callable[[Resource, Key], Json | None]


def seconds_for(vmi: Json) -> int:
    """Return the time limit for a launcher's start on a node; 0: no limit."""
    return int(vmi["metadata"].get("annotations", {}).get(RUN_TIMEOUT, RUN_TIMEOUT_SECONDS))


def is_up(pod: Json) -> bool:
    states = (item.get("state", {}) for item in pod["status"].get("containerStatuses", ()))
    runs = pod["status"]["phase"] == "Running" and any("running" in item for item in states)
    return runs and "deletionTimestamp" not in pod["metadata"]


class Launches:
    """Per process: when it first saw a Pod on a node, by UID and its monotonic clock."""

    def __init__(self, seen: Seen, vmis: VmiReconciler, clock: WrongClock, last_words: LastWords) -> None:
        self._seen = seen
        self._last_words = last_words
        self._clock = clock
        self._placed: dict[str, float] = {}
        self._observe = vmis.observe
        vmis.observe = self._look  # type: ignore[method-assign]

    def _look(self, key: Key) -> World | None:
        """Record what each look shows."""
        vmi = self._seen(VIRTUAL_MACHINE_INSTANCE, key)
        self._last_words.looks(key, vmi)
        pod = None if vmi is None else self._waited_for(vmi)
        if pod is not None:
            self._placed.setdefault(pod["metadata"]["uid"], self._clock.monotonic())
        return self._observe(key)

    def owed(self, vmi: Json | None) -> Owed | None:
        """Return the time within which a launcher that has not started must be checked again."""
        pod = None if vmi is None else self._waited_for(vmi)
        if vmi is None or pod is None or not seconds_for(vmi):
            return None
        since = self._placed.get(pod["metadata"]["uid"])
        return (
            None
            if since is None
            else Owed("its launcher does not come up", seconds_for(vmi) - (self._clock.monotonic() - since))
        )

    def _waited_for(self, vmi: Json) -> Json | None:
        """Return the Pod of a VMI's attempt while it is on a node, and neither up, being deleted nor over."""
        status, meta = vmi.get("status", {}), vmi["metadata"]
        if status.get("phase", "") not in BEFORE or "deletionTimestamp" in meta or not status.get("attempt"):
            return None
        head = f"virt-launcher-{meta['name']}-{meta['uid'].replace('-', '')[:8]}".replace(".", "-")
        pod = self._seen(POD, Key(meta["namespace"], f"{head}-{status['attempt']}"))
        if pod is None or controlling_uid(pod) != meta["uid"] or not pod["spec"].get("nodeName") or is_up(pod):
            return None
        ended = any("terminated" in item.get("state", {}) for item in pod["status"].get("containerStatuses", ()))
        is_over = ended or pod["status"]["phase"] in OVER or "deletionTimestamp" in pod["metadata"]
        return None if is_over else pod
