# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the control plane's objects serve, as readiness.py defines it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import TimedOut, VirtError
from .._client.waiter import Reached, Verdict, Waiter
from .kinds import BY_KIND
from .pod_events import event_troubles
from .readiness import RULES, missing, not_ready, pod_trouble, without_silent_nodes

Object = dict[str, Any]
_NODES = Resource("v1", "nodes", "Node", None)


def wait_until_serving(api: Api, objects: Iterable[Mapping[str, Any]], deadline: float) -> list[str]:
    """Wait for all objects of kinds with a rule. TimedOut says what each object lacks.

    deadline: by time.monotonic. Returns the nodes on which a DaemonSet does not serve because they are not Ready: it
    counts as serving when it serves on all others.
    """
    groups: dict[tuple[str, str | None], list[str]] = {}
    for obj in objects:
        groups.setdefault((obj["kind"], obj["metadata"].get("namespace")), []).append(obj["metadata"]["name"])
    silent: set[str] = set()
    troubles: list[str] = []
    waited: list[_Group] = []
    for kind in RULES:  # dependencies first, so that their troubles are reported first
        for (_kind, namespace), names in sorted(groups.items(), key=lambda item: item[0][1] or ""):
            if _kind == kind:
                group = _Group(api, BY_KIND[kind].resource(namespace), deadline)
                with api.bounded(deadline):  # also bounds the requests that explain a timeout
                    troubles += group.wait(names)
                silent |= group.silent
                waited.append(group)
    if troubles:
        with api.bounded(deadline):
            troubles += [text for group in waited for text in group.relapses()]
        raise TimedOut("; ".join(troubles))
    return sorted(silent)


class _Group:
    """Objects of one kind in one namespace."""

    def __init__(self, api: Api, resource: Resource, deadline: float) -> None:
        self._api = api
        self._resource = resource
        self._deadline = deadline
        self.silent: set[str] = set()
        self._served: list[Object] = []

    def wait(self, names: Iterable[str]) -> list[str]:
        """Return what is missing at the deadline; nothing when all serve."""
        waiter = Waiter(self._api, self._resource, self._judge, deadline=self._deadline)
        results = waiter.until(names)
        self._served = [reached.obj for reached in results.values() if reached.verdict.done and reached.obj]
        return [
            reached.trouble or self._explain(name, reached)
            for name, reached in results.items()
            if not reached.verdict.done
        ]

    def relapses(self) -> list[str]:
        """Return the troubles of components that served when they were waited for; others may wait for them now."""
        with suppress(VirtError):
            if self._resource.kind in ("Deployment", "DaemonSet"):
                return [text for obj in self._served for pod in self._pods_of(obj) if (text := pod_trouble(pod))]
        return []

    def _judge(self, _name: str, obj: Object | None) -> Verdict:
        reason = "it does not exist" if obj is None else missing(obj)
        if reason is None:
            return Verdict(done=True)
        nodes = self._silent_nodes(obj) if obj is not None else []
        self.silent.update(nodes)
        return Verdict(done=bool(nodes), missing=reason)

    def _silent_nodes(self, obj: Object) -> list[str]:
        if obj["kind"] != "DaemonSet":
            return []
        revisions = self._selected(
            obj, Resource("apps/v1", "controllerrevisions", "ControllerRevision", self._resource.namespace)
        )
        return without_silent_nodes(obj, self._pods_of(obj), self._api.list(_NODES), revisions) or []

    def _explain(self, name: str, reached: Reached) -> str:
        texts = [f"{self._resource.kind} {name}: {reached.verdict.missing}"]
        with suppress(VirtError):  # the Pods only add detail
            texts += self._details(reached)
        return "; ".join(texts)

    def _details(self, reached: Reached) -> Iterator[str]:
        """Yield the troubles of a component's Pods and of the nodes."""
        if reached.obj is not None and self._resource.kind in ("Deployment", "DaemonSet"):
            pods = self._pods_of(reached.obj)
            yield from filter(None, map(pod_trouble, pods))
            warnings = self._api.list(
                Resource("v1", "events", "Event", self._resource.namespace), fields="type=Warning"
            )
            yield from event_troubles(reached.obj["metadata"]["name"], pods, warnings)
        if self._resource.kind == "DaemonSet" and (silent := not_ready(self._api.list(_NODES))):
            counted = "nodes that are not Ready count against control_plane_workload_max_unavailable at a roll-out"
            yield f"{counted}: {', '.join(silent)}"

    def _pods_of(self, obj: Object) -> list[Object]:
        return self._selected(obj, Resource("v1", "pods", "Pod", self._resource.namespace))

    def _selected(self, obj: Object, resource: Resource) -> list[Object]:
        """Return what the selector of a Deployment or a DaemonSet selects."""
        labels = obj["spec"]["selector"]["matchLabels"]
        return self._api.list(resource, labels=",".join(f"{key}={value}" for key, value in sorted(labels.items())))
