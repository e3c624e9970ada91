# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-controller process with the controller of one set, on a store that loses responses."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.members.reconciler import Parts, SetReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import Json

WEB = Key("default", "web")
LABELS = {"app": "web"}
READY: Json = {"type": "Ready", "status": "True"}


class SetProcess(SmallWorld):
    """Subclasses set the reconciler."""

    reconciler: SetReconciler[Any, Any, Any]

    @property
    def parts(self) -> Parts:
        return {"api": self.api, "clock": self.clock, "events": self.recorder, "configuration": KubeVirtConfiguration}

    async def run(self, *, catch_up: bool = True) -> Outcome:
        outcome = await reconcile(self.reconciler, WEB)
        if catch_up:
            self.catch_up()
        return outcome

    def observe(self) -> Any:
        world = self.reconciler.observe(WEB)
        assert world is not None
        return world

    def reasons(self) -> list[str]:
        return self.recorder.reasons

    def objects(self, kind: Resource) -> dict[str, Json]:
        return {key.name: body for key, body in self.store.list(kind)}

    def lose_response(self, verb: str) -> None:
        """Carry out the next write with this verb, and lose its response."""
        write = getattr(self.store, verb)

        def lose(*args: Any, **options: Any) -> Json:
            setattr(self.store, verb, write)
            write(*args, **options)
            raise Unavailable("connection reset")

        setattr(self.store, verb, lose)
