# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look whether a machine is stuck (stuck.py, no_node.py). Reading is best effort: what cannot be read ends no wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..._client.api import Api
from ..._client.errors import VirtError
from ..._client.waiter import Stuck
from ...kubevirt_api.predicates import is_ready
from .. import kinds
from ..field_path import value_at
from . import diagnose, no_node, stuck

Object = dict[str, Any]


class Search:
    """Remembers what it has read until `start_over`."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._nodes: list[Object] | None = None
        self._no_node: dict[str, str | None] = {}

    def start_over(self) -> None:
        """Forget what was read."""
        self._nodes = None
        self._no_node = {}

    def of_machine(self, machine: Object) -> Stuck | None:
        """Return what an instance, or a VM by the conditions of its instance, is stuck in."""
        found = stuck.of_machine(machine)
        if found is not None or not stuck.is_unschedulable(machine):
            return found
        name = machine["metadata"]["name"]
        if name not in self._no_node:
            self._no_node[name] = self._why_no_node(machine)
        reason = self._no_node[name]
        return stuck.on_no_node(reason) if reason else None

    def of_member(self, obj: Object, kind: kinds.Kind) -> Stuck | None:
        """Return what the first stuck member of a set is stuck in. The status of a set does not say that."""
        from ..members import members

        try:
            listed = members(self._api, obj, self._namespace, kind)
        except VirtError:
            return None
        for member in listed:
            found = None if is_ready(member) else self.of_machine(member)
            if found is not None:
                return replace(found, text=f"{member['metadata']['name']}: {found.text}")
        return None

    def of_target(self, pods: list[Object], source: str) -> Stuck | None:
        """Return what the target Pods of a migration are stuck in. source: the node that the machine leaves."""
        for pod in pods:
            found = stuck.of_pod(pod)
            if found is None and stuck.is_unschedulable(pod):
                spec = pod.get("spec") or {}
                reason = no_node.reason(
                    no_node.requests_of_pod(pod), no_node.selector_of(spec), self._all_nodes(), without=source
                )
                found = stuck.on_no_node(reason) if reason else None
            if found is not None:
                return found
        return None

    def _why_no_node(self, machine: Object) -> str | None:
        kind = kinds.VM if machine.get("kind") == kinds.VM.name else kinds.VMI
        spec = value_at(machine, kind.machine) or {}
        requests = no_node.requests_of_machine(spec)
        if kind is kinds.VMI and machine["metadata"].get("uid"):
            pods = diagnose.list_or_nothing(self._api, kinds.pods(self._namespace), labels=kinds.launchers(machine))
            requests = next((no_node.requests_of_pod(pod) for pod in pods if stuck.is_unschedulable(pod)), requests)
        return no_node.reason(requests, no_node.selector_of(spec), self._all_nodes())

    def _all_nodes(self) -> list[Object]:
        if self._nodes is None:
            self._nodes = diagnose.list_or_nothing(self._api, kinds.nodes())
        return self._nodes
