# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what to do about one machine: move it, wait for who moves it already, cancel, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._client.errors import VirtError
from ..kubevirt_api import condition_types, phases
from ..kubevirt_api.desired import is_deleting
from ..kubevirt_api.predicates import condition, is_final, phase
from . import migration_status
from .request import Wish

NOTHING, CREATE, JOIN, OUTWAIT, CANCEL = "nothing", "create", "join", "outwait", "cancel"
"""join: wait for a migration that is under way. outwait: for one that is being cancelled, then decide anew."""
HOSTNAME = "kubernetes.io/hostname"

Object = dict[str, Any]


class Unmovable(VirtError):
    """The machine is there and cannot be moved as it is."""


class Plan(NamedTuple):
    """What to do; migration: the one that is waited for or cancelled."""

    deed: str
    migration: Object | None = None


def decide(wish: Wish, vmi: Object | None, migrations: Sequence[Object], place: Object | None = None) -> Plan:
    """Return what brings a machine where it is wanted. Raises what keeps it from going there.

    migrations: those of this machine. place: the node where it should be, or, where labels say it, the one where it is.
    """
    unfinished = [one for one in migrations if not migration_status.is_over(one)]
    if wish.state == "absent":
        is_elsewhere = wish.from_node is not None and node_of(vmi) != wish.from_node
        found = [] if is_elsewhere else unfinished
        return Plan(CANCEL, found[0]) if found else Plan(NOTHING)
    if wish.from_node is not None and node_of(vmi) != wish.from_node:
        return Plan(NOTHING)
    running = _running(wish, vmi)
    if unfinished:
        return _beside(wish, running, unfinished[0], place)
    if is_there(wish, running, place):
        return Plan(NOTHING)
    fixed = condition(running, condition_types.LIVE_MIGRATABLE)
    if fixed is not None and fixed.get("status") == "False":
        raise unmovable(wish, running, _why_fixed(fixed))
    return Plan(CREATE)


def node_of(vmi: Object | None) -> str:
    """Return the node of an instance whose run is not over; "" when it has none."""
    return "" if vmi is None or is_final(vmi) else (vmi.get("status") or {}).get("nodeName") or ""


def is_there(wish: Wish, vmi: Object, place: Object | None) -> bool:
    """Tell whether a machine is where it should be; one that may be anywhere is to go elsewhere."""
    if wish.target_node:
        return node_of(vmi) == wish.target_node
    return bool(wish.node_selector) and _has_labels(place, wish)


def selector(wish: Wish, place: Object | None) -> dict[str, str]:
    """Return the labels that a migration asks of the node that it goes to."""
    if wish.target_node:
        labels = ((place or {}).get("metadata") or {}).get("labels") or {}
        return {HOSTNAME: labels.get(HOSTNAME) or wish.target_node}
    return dict(wish.node_selector)


def _has_labels(node: Object | None, wish: Wish) -> bool:
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    return all(labels.get(key) == value for key, value in wish.node_selector.items())


def _running(wish: Wish, vmi: Object | None) -> Object:
    if vmi is None:
        raise unmovable(wish, vmi, "it does not run; start it first (kubevirt_vm with state=started, wait=true)")
    if is_final(vmi):
        raise unmovable(wish, vmi, f"its run is over ({phase(vmi)}); start it anew first")
    if is_deleting(vmi):
        raise unmovable(wish, vmi, "it is being stopped")
    if phase(vmi) != phases.RUNNING:
        told = phase(vmi) or "not yet seen by virt-controller"
        remedy = "wait for that first (kubevirt_vmi_info with wait=true)"
        raise unmovable(wish, vmi, f"its instance is {told}, not Running; {remedy}")
    return vmi


def _beside(wish: Wish, vmi: Object, other: Object, place: Object | None) -> Plan:
    """Return what to do while another migration of the machine is unfinished."""
    if is_deleting(other):
        return Plan(OUTWAIT, other)
    if not wish.place or _leads_there(wish, vmi, other, place):
        return Plan(JOIN, other)
    to = migration_status.target_of(other, vmi)
    raise VirtError(
        f"{wish.title} cannot be moved to {wish.place}: migration {other['metadata']['name']}"
        f" ({migration_status.phase(other)}) moves it to {f'node {to}' if to else 'a node that is not known yet'};"
        " wait for that, or cancel it first (state=absent)",
        reason="another migration is under way",
    )


def _leads_there(wish: Wish, vmi: Object, other: Object, place: Object | None) -> bool:
    to = migration_status.target_of(other, vmi)
    if wish.target_node and to:
        return to == wish.target_node
    added = (other.get("spec") or {}).get("addedNodeSelector") or {}
    return selector(wish, place).items() <= added.items()


def _why_fixed(fixed: Object) -> str:
    told = ": ".join(str(fixed[key]) for key in ("reason", "message") if fixed.get(key))
    return f"its condition LiveMigratable is False ({told or 'no reason given'}); change that, or stop and start it"


def unmovable(wish: Wish, vmi: Object | None, why: str) -> Unmovable:
    """Return the error of a machine that cannot be moved, with what a result says of it."""
    strategy = ((vmi or {}).get("spec") or {}).get("evictionStrategy") or ""
    facts = {"reason": why, "node": node_of(vmi), "eviction_strategy": str(strategy)}
    return Unmovable(f"{wish.title} cannot be migrated: {why}", **facts)
