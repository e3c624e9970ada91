# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply, patch or remove a list of objects, and wait until each serves or is gone.

Works on any kind by the server's discovery. What "serves" means is in readiness.py; the calls are _client.api's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._client import redact
from .._client.api import Api, Resource
from .._client.errors import NotFound, TimedOut
from .._client.waiter import Reached, Verdict, Waiter
from .readiness import missing, not_ready, pod_trouble, without_silent_nodes

Object = dict[str, Any]
_NODES = Resource("v1", "nodes", "Node", None)


@dataclass(frozen=True)
class Options:
    """How to go about it."""

    check: bool = False
    wait: bool = False
    wait_seconds: float = 300
    labels: Mapping[str, str] = field(default_factory=dict)
    """Added to the metadata of every object that is applied."""
    only_with_labels: Mapping[str, str] = field(default_factory=dict)
    """What an object must carry to be removed."""


@dataclass(frozen=True)
class Change:
    """What happened to one object, without secrets; None stands for "not there"."""

    title: str
    changed: bool
    before: Object | None
    after: Object | None
    is_left_alone: bool = False
    """Was to be removed, and does not carry the labels that it must."""
    silent_nodes: tuple[str, ...] = ()
    """Not Ready, so that it is not waited for there."""


class Objects:
    """A cluster's objects, addressed as manifests address them."""

    def __init__(self, api: Api, options: Options) -> None:
        self._api = api
        self._options = options
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def apply(self, obj: Object) -> Change:
        """Bring an object to its definition by server-side apply; a definition that holds already changes nothing."""
        wanted = self._labelled(obj)
        before = self.read(obj)
        try:
            after = self._api.apply(self._resource(obj), wanted, dry_run=self._options.check)
        except NotFound:
            if not self._options.check:
                raise
            after = wanted  # its kind or namespace would have been made just before
        return _change(obj, before, after)

    def patch(self, obj: Object) -> Change:
        """Merge-patch an object that exists; nothing is done to one that does not."""
        before = self.read(obj)
        if before is None:
            return _change(obj, None, None)
        after = self._api.patch(self._resource(obj), obj["metadata"]["name"], obj, dry_run=self._options.check)
        return _change(obj, before, after)

    def remove(self, obj: Object) -> Change:
        """Delete an object, exactly the one that was read; an absent one, or one of an unknown kind, is no change.

        One that does not carry the labels that it must is somebody else's, who happens to use the same name.
        """
        before = self.read(obj)
        if before is not None and not self._is_ours(before):
            return _change(obj, before, before, is_left_alone=True)
        if before is not None:
            options = {"preconditions": {"uid": before["metadata"]["uid"]}, "propagationPolicy": "Background"}
            self._api.delete(self._resource(obj), obj["metadata"]["name"], options, dry_run=self._options.check)
        return _change(obj, before, None)

    def read(self, obj: Mapping[str, Any]) -> Object | None:
        """Return the object as the server has it, None when there is none or its kind is unknown."""
        try:
            return self._api.get(self._resource(obj), obj["metadata"]["name"])
        except NotFound:
            return None

    def wait_ready(self, obj: Mapping[str, Any], deadline: float) -> list[str]:
        """Wait until an object serves; TimedOut says what was missing. The deadline is monotonic.

        Returns the nodes on which it does not, because they are not Ready: a DaemonSet serves as soon as it does
        everywhere else.
        """
        silent: list[str] = []

        def is_enough(seen: Object | None) -> bool:
            if seen is None or not missing(seen):
                silent.clear()
                return seen is not None
            silent[:] = self._silent_nodes(seen)
            return bool(silent)

        reached = self._await(obj, deadline, is_enough)
        if not reached.verdict.done:
            raise TimedOut(reached.trouble or self._explain(obj, reached.obj))
        return silent

    def _silent_nodes(self, seen: Object) -> list[str]:
        if seen["kind"] != "DaemonSet":
            return []
        return without_silent_nodes(seen, self._pods_of(seen), self._api.list(_NODES)) or []

    def wait_gone(self, obj: Mapping[str, Any], deadline: float) -> None:
        """Wait until an object is gone; TimedOut says what holds it. The deadline is monotonic."""
        try:
            reached = self._await(obj, deadline, lambda one: one is None)
        except NotFound:
            return  # its whole kind is gone
        if not reached.verdict.done:
            held = ", ".join((reached.obj or {"metadata": {}})["metadata"].get("finalizers") or ())
            why = reached.trouble or f"it is held by {held or 'nothing that it says'}"
            raise TimedOut(f"{obj['kind']} {obj['metadata']['name']} is not gone; {why}")

    def _await(self, obj: Mapping[str, Any], deadline: float, is_enough: Callable[[Object | None], bool]) -> Reached:
        name = obj["metadata"]["name"]
        waiter = Waiter(self._api, self._resource(obj), lambda _, one: Verdict(is_enough(one)), deadline=deadline)
        return waiter.until([name])[name]

    def _explain(self, obj: Mapping[str, Any], seen: Object | None) -> str:
        kind, name = obj["kind"], obj["metadata"]["name"]
        if seen is None:
            return f"{kind} {name} does not exist"
        texts = [f"{kind} {name}: {missing(seen)}"]
        if kind in ("Deployment", "DaemonSet"):
            texts += filter(None, map(pod_trouble, self._pods_of(seen)))
        if kind == "DaemonSet" and (silent := not_ready(self._api.list(_NODES))):
            texts.append(f"nodes that are not Ready count as unavailable when it is rolled out: {', '.join(silent)}")
        return "; ".join(texts)

    def _pods_of(self, seen: Object) -> list[Object]:
        labels = seen["spec"]["selector"]["matchLabels"]
        pods = Resource("v1", "pods", "Pod", seen["metadata"]["namespace"])
        return self._api.list(pods, labels=",".join(f"{key}={value}" for key, value in sorted(labels.items())))

    def _resource(self, obj: Mapping[str, Any]) -> Resource:
        """Return where objects like this one are; NotFound when the server does not know the kind."""
        api_version, kind = obj["apiVersion"], obj["kind"]
        if kind not in self._kinds.get(api_version, {}):
            self._kinds[api_version] = self._api.kinds(api_version)
        if kind not in self._kinds[api_version]:
            raise NotFound(f"the API server does not know kind {kind} of {api_version}", status=404)
        plural, namespaced = self._kinds[api_version][kind]
        return Resource(api_version, plural, kind, obj["metadata"].get("namespace") if namespaced else None)

    def _is_ours(self, obj: Mapping[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in self._options.only_with_labels.items())

    def _labelled(self, obj: Object) -> Object:
        metadata = dict(obj["metadata"])
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._options.labels}
        return {**obj, "metadata": metadata}


def _change(
    obj: Mapping[str, Any], before: Object | None, after: Object | None, *, is_left_alone: bool = False
) -> Change:
    metadata = obj["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    before, after = content(before), content(after)
    shown = redact.redacted(before), redact.redacted(after, unlike=before)
    return Change(f"{obj['kind']} {name}", before != after, *shown, is_left_alone)


_BOOKKEEPING = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def content(obj: Object | None) -> Object | None:
    """Return what counts as a change: no bookkeeping, no status. It may hold secrets."""
    if obj is None:
        return None
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return kept


def bring_about(api: Api, definitions: list[Object], state: str, options: Options) -> list[Change]:
    """Make the cluster agree with a list of definitions: present, patched or absent.

    Objects are applied in the order given and removed in the opposite one. With wait, all are awaited after the last
    was sent, so that components which need one another can start. Raises TimedOut, and what the calls raise.
    """
    objects = Objects(api, options)
    act = {"present": objects.apply, "patched": objects.patch, "absent": objects.remove}[state]
    ordered = definitions[::-1] if state == "absent" else definitions
    changes = [act(obj) for obj in ordered]
    if options.wait and not options.check:
        deadline = time.monotonic() + options.wait_seconds
        for number, (obj, change) in enumerate(zip(ordered, changes, strict=True)):
            if change.is_left_alone:
                continue
            if state == "absent":
                objects.wait_gone(obj, deadline)
            else:
                changes[number] = replace(change, silent_nodes=tuple(objects.wait_ready(obj, deadline)))
    return changes


def left_alone(changes: list[Change]) -> list[str]:
    """Name what was to be removed and is not, but for what goes with its namespace."""
    gone = {one.title.removeprefix("Namespace ") for one in changes if one.changed}
    return [one.title for one in changes if one.is_left_alone and _namespace(one.title) not in gone]


def _namespace(title: str) -> str | None:
    """Return the namespace of what a title names, None for what is in none."""
    place, slash, _name = title.partition(" ")[2].partition("/")
    return place if slash else None


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Do what module kubevirt_objects does."""
    options = Options(
        check=check_mode,
        wait=params["wait"],
        wait_seconds=params["wait_timeout"],
        labels={key: str(value) for key, value in params["labels"].items()},
        only_with_labels={key: str(value) for key, value in params["only_with_labels"].items()},
    )
    changes = bring_about(api, params["definitions"], params["state"], options)
    made = [one for one in changes if one.changed]
    result: dict[str, Any] = {
        "changed": bool(made),
        "changes": [one.title for one in made],
        "left_alone": left_alone(changes),
        "not_ready_nodes": sorted({node for one in changes for node in one.silent_nodes}),
    }
    if diff:
        result["diff"] = [{"header": one.title, "before": one.before or "", "after": one.after or ""} for one in made]
    return result
