# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what to do about one machine: migrate it, wait for a migration, cancel one, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._client.errors import VirtError
from ..kubevirt_api import condition_types, phases
from ..kubevirt_api.desired import is_deleting
from ..kubevirt_api.predicates import condition, is_final, phase
from . import migration_status
from .request import MigrationRequest

NOTHING, CREATE, JOIN, OUTWAIT, CANCEL = "nothing", "create", "join", "outwait", "cancel"
"""join: wait for an unfinished migration. outwait: wait until a cancelled migration is over, then decide again."""
HOSTNAME = "kubernetes.io/hostname"

Object = dict[str, Any]


class Unmovable(VirtError):
    """The machine exists and cannot be migrated in its present state."""


class NotRunning(Unmovable):
    """The machine does not run, so it is on no node."""


class Plan(NamedTuple):
    """What to do. migration: the migration to wait for or to cancel."""

    action: str
    migration: Object | None = None


def decide(
    request: MigrationRequest, vmi: Object | None, migrations: Sequence[Object], target_node: Object | None = None
) -> Plan:
    """Return what brings a machine to its target. Raises VirtError if that is impossible.

    migrations: of this machine. place: the target node; with a node selector, the current node.
    """
    unfinished = [migration for migration in migrations if not migration_status.is_over(migration)]
    if request.state == "absent":
        is_elsewhere = request.from_node is not None and node_of(vmi) != request.from_node
        cancelled = [] if is_elsewhere else unfinished
        return Plan(CANCEL, cancelled[0]) if cancelled else Plan(NOTHING)
    if request.from_node is not None and node_of(vmi) != request.from_node:
        return Plan(NOTHING)
    running = _running(request, vmi)
    if unfinished:
        return _with_unfinished(request, running, unfinished[0], target_node)
    if is_there(request, running, target_node):
        return Plan(NOTHING)
    live_migratable = condition(running, condition_types.LIVE_MIGRATABLE)
    if live_migratable is not None and live_migratable.get("status") == "False":
        raise unmovable(request, running, _immovable_reason(live_migratable))
    return Plan(CREATE)


def node_of(vmi: Object | None) -> str:
    """Return the node of an instance whose run is not over, "" without one."""
    return "" if vmi is None or is_final(vmi) else (vmi.get("status") or {}).get("nodeName") or ""


def is_there(request: MigrationRequest, vmi: Object, target_node: Object | None) -> bool:
    """Tell whether a machine is on its target. Without a target it must leave its node, so the result is False."""
    if request.target_node:
        return node_of(vmi) == request.target_node
    return bool(request.node_selector) and _has_labels(target_node, request)


def selector(request: MigrationRequest, target_node: Object | None) -> dict[str, str]:
    """Return the labels that a migration requires of its target node."""
    if request.target_node:
        labels = ((target_node or {}).get("metadata") or {}).get("labels") or {}
        return {HOSTNAME: labels.get(HOSTNAME) or request.target_node}
    return dict(request.node_selector)


def _has_labels(node: Object | None, request: MigrationRequest) -> bool:
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    return all(labels.get(key) == value for key, value in request.node_selector.items())


def _running(request: MigrationRequest, vmi: Object | None) -> Object:
    if vmi is None:
        remedy = "start it first (kubevirt_vm with state=started, wait=true)"
        raise unmovable(request, vmi, f"it does not run; {remedy}", NotRunning)
    if is_final(vmi):
        raise unmovable(request, vmi, f"its run is over ({phase(vmi)}); start it again first", NotRunning)
    if is_deleting(vmi):
        raise unmovable(request, vmi, "it is being stopped")
    if phase(vmi) != phases.RUNNING:
        phase_text = phase(vmi) or "not yet seen by virt-controller"
        remedy = "wait for that first (kubevirt_vmi_info with wait=true)"
        raise unmovable(request, vmi, f"its instance is {phase_text}, not Running; {remedy}", NotRunning)
    return vmi


def _with_unfinished(request: MigrationRequest, vmi: Object, other: Object, target_node: Object | None) -> Plan:
    """Return what to do while a migration of the machine is unfinished."""
    if is_deleting(other):
        return Plan(OUTWAIT, other)
    if not request.place or _has_target(request, vmi, other, target_node):
        return Plan(JOIN, other)
    target = migration_status.target_of(other, vmi)
    where = f"node {target}" if target else "a node that is not known yet"
    raise VirtError(
        f"{request.title} cannot be migrated to {request.place}: migration {other['metadata']['name']}"
        f" ({migration_status.phase(other)}) migrates it to {where}; wait for it, or"
        " cancel it first (state=absent)",
        reason="another migration is in progress",
    )


def _has_target(request: MigrationRequest, vmi: Object, other: Object, target_node: Object | None) -> bool:
    target = migration_status.target_of(other, vmi)
    if request.target_node and target:
        return target == request.target_node
    added = (other.get("spec") or {}).get("addedNodeSelector") or {}
    return selector(request, target_node).items() <= added.items()


def _immovable_reason(movable: Object) -> str:
    details = ": ".join(str(movable[key]) for key in ("reason", "message") if movable.get(key))
    return f"its condition LiveMigratable is False ({details or 'no reason given'}); change that, or stop and start it"


def unmovable(
    request: MigrationRequest, vmi: Object | None, reason: str, kind: type[Unmovable] = Unmovable
) -> Unmovable:
    """Return the error for a machine that cannot be migrated, with the facts for the result."""
    strategy = ((vmi or {}).get("spec") or {}).get("evictionStrategy") or ""
    facts = {"reason": reason, "node": node_of(vmi), "eviction_strategy": str(strategy)}
    return kind(f"{request.title} cannot be migrated: {reason}", **facts)
