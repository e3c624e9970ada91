# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until what the role made serves. What "serves" means is in readiness.py; the waiting is _client.waiter's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import TimedOut, VirtError
from .._client.waiter import Reached, Verdict, Waiter
from .kinds import BY_KIND
from .readiness import RULES, missing, not_ready, pod_trouble, without_silent_nodes

Object = dict[str, Any]
_NODES = Resource("v1", "nodes", "Node", None)


def wait_until_serving(api: Api, objects: Iterable[Mapping[str, Any]], deadline: float) -> list[str]:
    """Wait for all objects of the kinds that have a rule; TimedOut says of each what was missing.

    The deadline is monotonic. Returns the nodes on which a DaemonSet does not serve because they are not Ready: it
    serves as soon as it does everywhere else.
    """
    groups: dict[tuple[str, str | None], list[str]] = {}
    for one in objects:
        groups.setdefault((one["kind"], one["metadata"].get("namespace")), []).append(one["metadata"]["name"])
    silent: set[str] = set()
    troubles: list[str] = []
    for kind in RULES:  # what others rest on comes first, so that its trouble does
        for (_kind, namespace), names in sorted(groups.items(), key=lambda one: one[0][1] or ""):
            if _kind == kind:
                group = _Group(api, BY_KIND[kind].resource(namespace), deadline)
                with api.bounded(deadline):  # to say what is missing, too
                    troubles += group.wait(names)
                silent |= group.silent
    if troubles:
        raise TimedOut("; ".join(troubles))
    return sorted(silent)


class _Group:
    """Objects of one kind in one namespace."""

    def __init__(self, api: Api, resource: Resource, deadline: float) -> None:
        self._api = api
        self._resource = resource
        self._deadline = deadline
        self.silent: set[str] = set()

    def wait(self, names: Iterable[str]) -> list[str]:
        """Return what is missing when time is up; nothing when all serve."""
        waiter = Waiter(self._api, self._resource, self._judge, deadline=self._deadline)
        return [
            reached.trouble or self._explain(name, reached)
            for name, reached in waiter.until(names).items()
            if not reached.verdict.done
        ]

    def _judge(self, _name: str, seen: Object | None) -> Verdict:
        lacks = "it does not exist" if seen is None else missing(seen)
        if lacks is None:
            return Verdict(done=True)
        nodes = self._silent_nodes(seen) if seen is not None else []
        self.silent.update(nodes)
        return Verdict(done=bool(nodes), missing=lacks)

    def _silent_nodes(self, seen: Object) -> list[str]:
        if seen["kind"] != "DaemonSet":
            return []
        revisions = self._found_by(
            seen, Resource("apps/v1", "controllerrevisions", "ControllerRevision", self._resource.namespace)
        )
        return without_silent_nodes(seen, self._pods_of(seen), self._api.list(_NODES), revisions) or []

    def _explain(self, name: str, reached: Reached) -> str:
        texts = [f"{self._resource.kind} {name}: {reached.verdict.missing}"]
        with suppress(VirtError):  # that much is known without them
            texts += self._beside(reached)
        return "; ".join(texts)

    def _beside(self, reached: Reached) -> Iterator[str]:
        """Yield what a component's Pods and the nodes say."""
        if reached.obj is not None and self._resource.kind in ("Deployment", "DaemonSet"):
            yield from filter(None, map(pod_trouble, self._pods_of(reached.obj)))
        if self._resource.kind == "DaemonSet" and (silent := not_ready(self._api.list(_NODES))):
            counted = "nodes that are not Ready count against control_plane_workload_max_unavailable at a roll-out"
            yield f"{counted}: {', '.join(silent)}"

    def _pods_of(self, seen: Object) -> list[Object]:
        return self._found_by(seen, Resource("v1", "pods", "Pod", self._resource.namespace))

    def _found_by(self, seen: Object, resource: Resource) -> list[Object]:
        """Return what the selector of a Deployment or a DaemonSet finds."""
        labels = seen["spec"]["selector"]["matchLabels"]
        return self._api.list(resource, labels=",".join(f"{key}={value}" for key, value in sorted(labels.items())))
