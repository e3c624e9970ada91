# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KubeVirt controller: reports in the object's status that the control plane works. It has no other action."""

from __future__ import annotations

import logging
from typing import NoReturn

from controlplane.api.objects.decode import decode_kubevirt, encode
from controlplane.api.objects.kubevirt import KubeVirt, KubeVirtStatus
from controlplane.api.objects.resources import KUBEVIRT, Key
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Action, Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.kubevirt.status import derive_status

log = logging.getLogger(__name__)


class KubeVirtReconciler:
    def __init__(self, *, kubevirts: ReadYourWritesCache, api: Api, clock: Clock, version: str) -> None:
        self._kubevirts = kubevirts
        self._api = api
        self._clock = clock
        self._version = version

    def observe(self, key: Key) -> KubeVirt | None:
        raw = self._kubevirts.get(key)
        return None if raw is None else decode_kubevirt(raw)

    def decide(self, _world: KubeVirt) -> Plan[Action]:
        return Plan()

    async def apply(self, world: KubeVirt, action: Action) -> NoReturn:
        raise AssertionError(f"nothing is ever planned for a KubeVirt: {world.metadata.name} {action}")

    def derive_status(self, world: KubeVirt, _problem: RefusedStep[Action] | None) -> KubeVirtStatus | None:
        return derive_status(world, version=self._version, now=self._clock.now())

    async def write_status(self, world: KubeVirt, status: KubeVirtStatus) -> None:
        await self._api.patch(
            KUBEVIRT,
            Key(world.metadata.namespace, world.metadata.name),
            {"status": merge_patch(encode(world.status), encode(status))},
            subresource="status",
            resource_version=world.metadata.resource_version,
            uid=world.metadata.uid,
        )

    def report_refusal(self, world: KubeVirt, problem: RefusedStep[Action]) -> None:
        log.warning("refused", extra={"key": world.metadata.name, "error": str(problem.error)})
