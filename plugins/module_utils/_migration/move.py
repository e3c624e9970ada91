# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one machine where it is wanted: read, decide, at most one write, wait. Thin.

Whoever is faster in making a migration of the same machine makes the create be refused; then it is decided anew.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from .._client.api import Api
from .._client.errors import ApiError, TimedOut, VirtError
from .._client.waiter import Reached, Verdict, Waiter
from .._vm import kinds
from .._vm.request.vm_request import Terms
from ..kubevirt_api import names
from . import decide, migration_status, nodes
from .request import MIGRATION, Wish

ATTEMPTS = 4
"""Rounds against others who move the same machine meanwhile."""

Object = dict[str, Any]


class Done(NamedTuple):
    """What was done for one machine."""

    changed: bool
    method: str | None = None
    """create or delete."""
    before: Object | None = None
    after: Object | None = None
    """The migration as it was seen last; None where there is none to speak of."""
    vmi: Object | None = None
    """The instance after it."""
    is_waited: bool = False


def ensure(api: Api, wish: Wish, terms: Terms, deadline: float) -> Done:
    """Bring a machine where it is wanted, and wait for it if the task does. deadline: by time.monotonic()."""
    for attempt in range(1, ATTEMPTS + 1):
        vmi = api.get(kinds.instances(wish.namespace, terms.api_version), wish.name)
        place = nodes.place_of(api, wish, vmi) if wish.state == "present" else None
        _is_known(api, wish, vmi, terms)
        plan = decide.decide(wish, vmi, migrations_of(api, wish, terms), place)
        if plan.deed == decide.OUTWAIT:
            _outwait(api, wish, terms, plan.migration or {}, deadline)
            continue
        done = Done(changed=False, before=plan.migration, after=plan.migration, vmi=vmi)
        if plan.deed == decide.NOTHING:
            return done._replace(before=None, after=None)
        if plan.deed == decide.CANCEL:
            return _cancelled(api, wish, terms, done, deadline)
        if plan.deed == decide.CREATE:
            nodes.check(api, wish, vmi or {}, place)
            made = _created(api, wish, terms, place, is_last=attempt == ATTEMPTS)
            if made is None:
                continue
            done = done._replace(changed=True, method="create", before=None, after=made)
        return _arrived(api, wish, terms, done, deadline) if terms.wait and not terms.check_mode else done
    raise VirtError(f"{wish.title} is being migrated and cancelled by others all the time")


def _is_known(api: Api, wish: Wish, vmi: Object | None, terms: Terms) -> None:
    """Raise where a machine that is to be moved does not even exist: neither to start it nor to leave it would help."""
    if vmi is not None or wish.state == "absent" or not wish.is_named:
        return
    try:
        machine = api.get(kinds.virtual_machines(wish.namespace, terms.api_version), wish.name)
    except VirtError:  # whoever may not read machines is told that it does not run
        return
    if machine is None:
        why = "there is no such machine; look at its name and its namespace"
        raise VirtError(f"{wish.title} cannot be migrated: {why}", reason=why)


def migrations_of(api: Api, wish: Wish, terms: Terms) -> list[Object]:
    """Return all migrations of a machine, the oldest first. Known by what they say: not all of them have a label."""
    listed = api.list(MIGRATION.resource(wish.namespace, terms.api_version))
    own = [one for one in listed if (one.get("spec") or {}).get("vmiName") == wish.name]
    return sorted(own, key=lambda one: str(one["metadata"].get("creationTimestamp") or ""))


def body(wish: Wish, terms: Terms, place: Object | None) -> Object:
    """Return the migration that moves a machine. Pure."""
    spec: Object = {"vmiName": wish.name}
    if wish.place:
        spec["addedNodeSelector"] = decide.selector(wish, place)
    prefix = f"{wish.name[:200].rstrip('-.')}-migration-"
    return {
        "apiVersion": terms.api_version or names.API_VERSION,
        "kind": MIGRATION.name,
        "metadata": {"generateName": prefix, "namespace": wish.namespace},
        "spec": spec,
    }


def _created(api: Api, wish: Wish, terms: Terms, place: Object | None, *, is_last: bool) -> Object | None:
    """Return the migration that was made; None if somebody was faster."""
    resource = MIGRATION.resource(wish.namespace, terms.api_version)
    try:
        return api.create(resource, body(wish, terms, place), dry_run=terms.check_mode)
    except ApiError:
        if not is_last and any(not migration_status.is_over(one) for one in migrations_of(api, wish, terms)):
            return None
        raise


def _outwait(api: Api, wish: Wish, terms: Terms, other: Object, deadline: float) -> None:
    """Wait until a migration that is being cancelled is over."""
    title = f"{wish.title} cannot be migrated: migration {other['metadata']['name']} is being cancelled"
    if not terms.wait or terms.check_mode:
        raise VirtError(f"{title}; wait for that (wait=true), or run the task again")
    reached, _seen = _followed(api, wish, terms, other, deadline)
    if not reached.verdict.done:
        raise TimedOut(f"{title}, and still not over after {terms.wait_timeout_seconds} s", **_facts(api, wish, other))


def _cancelled(api: Api, wish: Wish, terms: Terms, done: Done, deadline: float) -> Done:
    migration = done.before or {}
    name, uid = migration["metadata"]["name"], migration["metadata"].get("uid")
    resource = MIGRATION.resource(wish.namespace, terms.api_version)
    if not migration["metadata"].get("deletionTimestamp"):
        options = {"preconditions": {"uid": uid}}
        is_there = api.delete(resource, name, options, dry_run=terms.check_mode)
        done = done._replace(changed=is_there, method="delete" if is_there else None)
    if terms.check_mode or not terms.wait:
        return done._replace(after=None)
    reached, seen = _followed(api, wish, terms, migration, deadline)
    if not reached.verdict.done:
        facts = {"changed": done.changed, **_facts(api, wish, seen)}
        why = reached.trouble or facts["reason"]
        text = f"{resource.title(name)} was cancelled and is not over after {terms.wait_timeout_seconds} s: {why}"
        raise TimedOut(text, **facts)
    vmi = api.get(kinds.instances(wish.namespace, terms.api_version), wish.name)
    return done._replace(after=seen, vmi=vmi, is_waited=True)


def _arrived(api: Api, wish: Wish, terms: Terms, done: Done, deadline: float) -> Done:
    """Wait until a migration is over, and fail with where it stands unless it succeeded."""
    migration = done.after or {}
    reached, seen = _followed(api, wish, terms, migration, deadline)
    title = MIGRATION.resource(wish.namespace).title(migration["metadata"]["name"])
    is_well = migration_status.phase(reached.obj) == migration_status.SUCCEEDED
    with api.bounded(max(deadline, time.monotonic() + 10)):  # to find out what became of it, too
        if reached.verdict.done:
            vmi = api.get(kinds.instances(wish.namespace, terms.api_version), wish.name)
            if is_well or (reached.obj is None and migration_status.has_moved(migration, vmi)):
                return done._replace(after=seen, vmi=vmi, is_waited=True)
        facts = {"changed": done.changed, **_facts(api, wish, seen)}
    where = f"; {wish.title} is on node {facts['node']}" if facts["node"] else ""
    if reached.obj is None and reached.verdict.done:
        raise VirtError(
            f"{title} was cancelled (somebody deleted it) in phase {migration_status.told(seen)}{where}", **facts
        )
    reason = "" if facts["reason"] == migration_status.nothing_but_phase(seen) else f": {facts['reason']}"
    if reached.verdict.done:
        raise VirtError(f"{title} failed{reason or ', and nothing says why'}{where}", **facts)
    why = f": as far as could be seen ({reached.trouble})" if reached.trouble else reason
    raise TimedOut(
        f"{title} is not over after {terms.wait_timeout_seconds} s, it is {migration_status.told(seen)}{why}{where}. It"
        " goes on; wait for it (kubevirt_migration_info with wait=true), or cancel it (state=absent)",
        **facts,
    )


def _followed(api: Api, wish: Wish, terms: Terms, migration: Object, deadline: float) -> tuple[Reached, Object]:
    """Wait until a migration is over or gone; return what became of it, and how it was seen last."""
    name, uid = migration["metadata"]["name"], migration["metadata"].get("uid")
    seen = [migration]

    def judge(_name: str, obj: Object | None) -> Verdict:
        if obj is None or obj["metadata"].get("uid") != uid:
            return Verdict(done=True)
        seen.append(obj)
        return Verdict(done=migration_status.is_over(obj), missing=f"it is {migration_status.told(obj)}")

    resource = MIGRATION.resource(wish.namespace, terms.api_version)
    reached = Waiter(api, resource, judge, deadline=deadline).until([name])[name]
    if reached.obj is not None and reached.obj["metadata"].get("uid") != uid:
        reached = Reached(None, reached.verdict)
    return reached, seen[-1]


def _facts(api: Api, wish: Wish, migration: Object) -> dict[str, Any]:
    try:
        vmi = api.get(kinds.instances(wish.namespace), wish.name)
    except VirtError:
        vmi = None
    return migration_status.explain(api, wish.namespace, migration, vmi)
