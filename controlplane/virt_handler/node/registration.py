# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes this node schedulable once the Node offers its devices, and unschedulable when this process ends.

labels.py builds the labels, heartbeat.py keeps them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Clock, Json
from controlplane.kube.lease import Heartbeat
from controlplane.links.node.messages import HostCpu, KvmFinding, NodeState
from controlplane.virt_handler.node import labels
from controlplane.virt_handler.node.heartbeat import keep_schedulable
from controlplane.virt_handler.node.virt_node_client import NodeClient

log = logging.getLogger(__name__)

_LEAVE_SECONDS = 2.0
_PLUGINS_SECONDS = 10.0
_OFFERED_SECONDS = 0.5


class NodeRegistration:
    """Labels and annotations of this process's Node."""

    def __init__(
        self,
        name: str,
        virt_node: NodeClient,
        api: Api,
        clock: Clock,
        heartbeat: Heartbeat,
        *,
        annotations: Mapping[str, str],
        is_on_control_plane: bool,
        start_blocked_reason: Callable[[], str],
    ) -> None:
        """annotations: for the Node. is_on_control_plane: VMs may run on a node of the cluster's control plane.

        start_blocked_reason: see keep_schedulable.
        """
        self._name = name
        self._virt_node = virt_node
        self._api = api
        self._clock = clock
        self._heartbeat = heartbeat
        self._annotations = annotations
        self._is_on_control_plane = is_on_control_plane
        self._start_blocked_reason = start_blocked_reason
        self._missing = {"virt-node"}

    @property
    def missing(self) -> set[str]:
        """The devices that the Node does not offer yet."""
        return self._missing if self._virt_node.is_connected else {"virt-node"}

    async def run(self) -> None:
        """Keep the node schedulable once its devices are offered, with labels of KVM and CPU, until cancelled.

        Start over when a restarted virt-node reports other values.
        """
        async with asyncio.TaskGroup() as group:
            state, labelled, labelling = await self._virt_node.wait_for_other_than(None), None, None
            while True:
                if state.kvm is not None and (state.kvm, state.cpu) != labelled:
                    offered = group.create_task(self._wait_until_offered())
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_PLUGINS_SECONDS):
                            await asyncio.shield(offered)
                    if labelling is not None:
                        labelling.cancel()
                    labelled = (state.kvm, state.cpu)
                    labelling = group.create_task(self._keep_schedulable(*labelled))
                state = await self._virt_node.wait_for_other_than(state)

    async def leave(self) -> None:
        """Make the node unschedulable."""
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._api.patch(NODE, Key("", self._name), labels.leaving_patch(), subresource="status")
        except (ApiError, TimeoutError) as error:
            log.warning("cannot label the node", extra={"node": self._name, "error": str(error)})

    async def _wait_until_offered(self) -> None:
        """Wait until the Node offers the devices. The kubelet writes them up to 10 s after a registration.

        Until then a VMI would be unschedulable. This polls, and only at the start: a watch would need permission to
        read every Node.
        """
        state: NodeState | None = None
        while state is None or not {*state.present} <= {*state.registered}:
            state = await self._virt_node.wait_for_other_than(state)
            self._missing = {*state.present} - {*state.registered}
        self._missing = {*state.present}
        while True:
            try:
                if labels.offers(await self._api.get(NODE, Key("", self._name)), state.usable):
                    break
            except ApiError as error:
                log.warning("cannot read the node", extra={"node": self._name, "error": str(error)})
            await asyncio.sleep(_OFFERED_SECONDS)
        self._missing = set()

    async def _keep_schedulable(self, kvm: KvmFinding, cpu: HostCpu | None) -> None:
        def serving(node: Json) -> Json:
            return labels.serving_patch(
                kvm,
                self._clock.now(),
                self._annotations,
                takes_machines=self._is_on_control_plane or not labels.is_for_control_plane(node),
                processor=labels.processor_labels(node, cpu),
            )

        await keep_schedulable(
            self._api, self._name, serving, self._heartbeat, start_blocked_reason=self._start_blocked_reason
        )
