# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quarantine controller: reads the caches, writes the label of one Node at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import Conflict, NotFound, Unavailable
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.changes import node_of
from controlplane.virt_controller.quarantine.decide import decide, newly_withheld
from controlplane.virt_controller.quarantine.failure_attribution import AttributedFailure, FailureAttribution
from controlplane.virt_controller.quarantine.quarantine_label import label_of, render_label
from controlplane.virt_controller.quarantine.world import Action, ObservedNode, Quarantine, Release, World
from controlplane.virt_controller.reporting.events import Events, Kind, Regarding

log = logging.getLogger(__name__)

ALL_NODES = Key("", "")
"""The only key: whether a node may be quarantined depends on all of them."""
QUARANTINED_REASON = "NodeQuarantined"
DOUBTFUL = "NodeQuarantineDoubtful"
WITHHELD = "NodeNotQuarantined"
RELEASED = "NodeReleased"
Withheld = tuple[ObservedNode, ...]
"""Nodes to report that are not quarantined because too few nodes would remain."""


class QuarantineReconciler:
    def __init__(
        self,
        *,
        nodes: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        enqueue: Callable[[Key], None] = lambda _unused: None,
    ) -> None:
        """enqueue: called with ALL_NODES when there is something to decide."""
        self._nodes = nodes
        self._vmis = vmis
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._enqueue = enqueue
        self._failures = FailureAttribution(changed=lambda: self._enqueue(ALL_NODES))
        self._label_values: dict[str, tuple[str, float]] = {}
        """By node: its label's value, and when (monotonic) this process first observed that value."""
        self._withheld: dict[str, tuple[AttributedFailure, ...]] = {}
        self._leading_since: float | None = None
        nodes.subscribe(self._node_changed)
        vmis.subscribe(self._vmi_changed)

    def begin(self) -> None:
        """Start to lead."""
        self._leading_since = self._clock.monotonic()
        self._enqueue(ALL_NODES)

    def enqueue_by(self, enqueue: Callable[[Key], None]) -> None:
        self._enqueue = enqueue

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until all of them are synced."""
        if not (self._nodes.synced and self._vmis.synced):
            raise Unavailable("cannot judge nodes: the caches are not synced yet")
        if key != ALL_NODES or self._leading_since is None:
            return None
        monotonic, vmis = self._clock.monotonic(), self._vmis.keys()
        read = ((key.name, self._nodes.get(key)) for key in sorted(self._nodes.keys()))
        return World(
            nodes=tuple(self._observed_node(name, raw, monotonic) for name, raw in read if raw is not None),
            now=self._clock.now(),
            monotonic=monotonic,
            leading_for=monotonic - self._leading_since,
            namespaces=len({key.namespace for key in vmis}),
            seconds=self._configuration().quarantine_seconds,
            withheld=dict(self._withheld),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    async def apply(self, _world: World, action: Action) -> None:
        match action:
            case Quarantine():
                await self._mark(action)
            case Release():
                await self._write(action.observed.node, None)
                self._record_event(
                    action.observed.node,
                    "Normal",
                    RELEASED,
                    f"Machines are scheduled to this node again: {action.because}.",
                )

    def derive_status(self, world: World, _problem: RefusedStep[Action] | None) -> Withheld | None:
        return newly_withheld(world) or None

    async def write_status(self, _world: World, status: Withheld) -> None:
        """Record Events about the nodes that are not quarantined."""
        for node in status:
            self._withheld[node.name] = node.failures
            text = "Runs fail on this node. It still takes machines, because too few nodes would remain without it."
            self._record_event(node.node, "Warning", WITHHELD, f"{text} Check the node.")

    def report_refusal(self, _world: World, problem: RefusedStep[Action]) -> None:
        log.warning("refused", extra={"error": str(problem.error)})

    async def _mark(self, action: Quarantine) -> None:
        node, failures = action.observed.node, action.observed.failures
        await self._confirm(action)
        until = render_label(action.until)
        text = (
            f"No new virtual machines are scheduled to node {node.metadata.name} until {until}: {action.because}. "
            f"To end this earlier: kubectl label node {node.metadata.name} {QUARANTINED}-"
        )
        try:
            await self._write(node, until)
        except Unavailable as error:
            self._record_event(
                node, "Warning", DOUBTFUL, f"It is unknown whether this has taken effect ({error}). {text}"
            )
            raise
        self._record_event(node, "Warning", QUARANTINED_REASON, text)
        for failure in failures:
            regarding = Regarding(VIRTUAL_MACHINE_INSTANCE, failure.vmi, failure.uid)
            self._events.record(regarding, "Normal", QUARANTINED_REASON, text, occurrence=until)

    async def _confirm(self, action: Quarantine) -> None:
        """Confirm with the API server that the other nodes take machines: another leader may have quarantined one."""
        for name in action.staying:
            try:
                node = decode(await self._api.get(NODE, Key("", name)), Node)
            except NotFound:
                raise Conflict(f"node {name} was deleted meanwhile") from None
            if label_of(node) is not None or not ObservedNode(node=node).is_fit:
                raise Conflict(f"node {name} takes no machines any more")

    async def _write(self, node: Node, mark: str | None) -> None:
        """Write or remove the label, with the observed UID and resourceVersion as preconditions."""
        meta = node.metadata
        patch = {"metadata": {"labels": {QUARANTINED: mark}}}
        key, version = Key("", meta.name), meta.resource_version
        await self._api.patch(NODE, key, patch, subresource="status", uid=meta.uid, resource_version=version)

    def _record_event(self, node: Node, kind: Kind, reason: str, message: str) -> None:
        meta = node.metadata
        regarding, occurrence = Regarding(NODE, Key("", meta.name), meta.uid), meta.resource_version
        self._events.record(regarding, kind, reason, message, occurrence=occurrence)

    def _observed_node(self, name: str, raw: bytes, monotonic: float) -> ObservedNode:
        node = decode(raw, Node)
        since = self._observe_label(name, label_of(node), monotonic)
        return ObservedNode(node=node, failures=self._failures.of(name), quarantined_for=monotonic - since)

    def _observe_label(self, name: str, mark: str | None, monotonic: float) -> float:
        """Record the label's value; return when (monotonic) the label got it."""
        if mark is None:
            self._label_values.pop(name, None)
            return monotonic
        if self._label_values.get(name, ("", 0.0))[0] != mark:
            self._label_values[name] = mark, monotonic
        return self._label_values[name][1]

    def _node_changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        old, new = (None if raw is None else _fingerprint(raw) for raw in (before, after))
        if old == new:
            return
        mark = None if new is None else new[0]
        self._observe_label(key.name, mark, self._clock.monotonic())
        if (None if old is None else old[0]) != mark or new is None:
            self._failures.forget(key.name)  # virt-controller or an administrator changed the label
            self._withheld.pop(key.name, None)
        self._enqueue(ALL_NODES)

    def _vmi_changed(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        self._failures.note(before, after, self._clock.monotonic())


def _fingerprint(raw: bytes) -> tuple[str | None, bool]:
    """Return the state that decisions depend on. Other changes of a Node are ignored."""
    node = node_of(raw)
    return label_of(node), ObservedNode(node=node).is_fit
