# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one machine to its target: read, decide, at most one write, wait.

The API refuses a second unfinished migration of a machine. A refused create starts over with a fresh read.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from .._client.api import Api
from .._client.errors import ApiError, TimedOut, VirtError
from .._client.waiter import Reached, Stuck, Verdict, Waiter
from .._vm import kinds
from .._vm.request.vm_request import Terms
from .._vm.wait.fail_fast import Search
from ..kubevirt_api import names
from . import decide, migration_status, nodes
from .request import MIGRATION, MigrationRequest

ATTEMPTS = 4
"""Rounds while others migrate the same machine."""

Object = dict[str, Any]


class Done(NamedTuple):
    """The result for one machine."""

    changed: bool
    method: str | None = None
    """create or delete."""
    before: Object | None = None
    after: Object | None = None
    """The newest version of the migration, None without a migration."""
    vmi: Object | None = None
    """The instance after the migration."""
    is_waited: bool = False
    warning: str = ""
    """What check mode could not know."""


def ensure(api: Api, request: MigrationRequest, terms: Terms, deadline: float) -> Done:
    """Bring a machine to its target, and wait if the task says so. deadline: by time.monotonic."""
    for attempt in range(1, ATTEMPTS + 1):
        vmi = api.get(kinds.instances(request.namespace, terms.api_version), request.name)
        target_node = nodes.place_of(api, request, vmi) if request.state == "present" else None
        if not terms.check_mode:
            _check_exists(api, request, vmi, terms)
        try:
            plan = decide.decide(request, vmi, migrations_of(api, request, terms), target_node)
        except decide.NotRunning as error:
            if not terms.check_mode or not request.is_named:
                raise
            return _foreseen(request, terms, target_node, error)
        if plan.action == decide.OUTWAIT and terms.check_mode:  # the cancelled one would be over by then
            return Done(changed=True, method="create", after=body(request, terms, target_node), vmi=vmi)
        if plan.action == decide.OUTWAIT:
            _wait_for_cancel(api, request, terms, plan.migration or {}, deadline)
            continue
        done = Done(changed=False, before=plan.migration, after=plan.migration, vmi=vmi)
        if plan.action == decide.NOTHING:
            return done._replace(before=None, after=None)
        if plan.action == decide.CANCEL:
            return _cancel(api, request, terms, done, deadline)
        if plan.action == decide.CREATE:
            nodes.check(api, request, vmi or {}, target_node)
            created = _create(api, request, terms, target_node, is_last=attempt == ATTEMPTS)
            if created is None:
                continue
            done = done._replace(changed=True, method="create", before=None, after=created)
        return _wait_for_end(api, request, terms, done, deadline) if terms.wait and not terms.check_mode else done
    raise VirtError(f"{request.title} is being migrated and cancelled by others all the time")


def _foreseen(request: MigrationRequest, terms: Terms, target_node: Object | None, error: decide.NotRunning) -> Done:
    """Return the result of check mode for a machine that an earlier task of the playbook may start."""
    warning = f"check mode: {error.message}; the task would fail, unless an earlier task starts it"
    return Done(changed=True, method="create", after=body(request, terms, target_node), warning=warning)


def _check_exists(api: Api, request: MigrationRequest, vmi: Object | None, terms: Terms) -> None:
    """Refuse to migrate a machine that does not exist."""
    if vmi is not None or request.state == "absent" or not request.is_named:
        return
    try:
        machine = api.get(kinds.virtual_machines(request.namespace, terms.api_version), request.name)
    except VirtError:  # without the right to read machines, the error is that it does not run
        return
    if machine is None:
        from .._vm import missing

        reason = missing.reason(api, request.namespace)
        raise VirtError(f"{request.title} cannot be migrated: {reason}", reason=reason)


def migrations_of(api: Api, request: MigrationRequest, terms: Terms) -> list[Object]:
    """Return all migrations of a machine, the oldest first. Selected by vmiName, because some have no label."""
    listed = api.list(MIGRATION.resource(request.namespace, terms.api_version))
    of_machine = [migration for migration in listed if (migration.get("spec") or {}).get("vmiName") == request.name]
    return sorted(of_machine, key=lambda migration: str(migration["metadata"].get("creationTimestamp") or ""))


def body(request: MigrationRequest, terms: Terms, target_node: Object | None) -> Object:
    """Return the migration that moves a machine. Pure."""
    spec: Object = {"vmiName": request.name}
    if request.place:
        spec["addedNodeSelector"] = decide.selector(request, target_node)
    prefix = f"{request.name[:200].rstrip('-.')}-migration-"
    return {
        "apiVersion": terms.api_version or names.API_VERSION,
        "kind": MIGRATION.name,
        "metadata": {"generateName": prefix, "namespace": request.namespace},
        "spec": spec,
    }


def _create(
    api: Api, request: MigrationRequest, terms: Terms, target_node: Object | None, *, is_last: bool
) -> Object | None:
    """Return the created migration, None if another client was faster."""
    resource = MIGRATION.resource(request.namespace, terms.api_version)
    try:
        return api.create(resource, body(request, terms, target_node), dry_run=terms.check_mode)
    except ApiError:
        if not is_last and any(
            not migration_status.is_over(migration) for migration in migrations_of(api, request, terms)
        ):
            return None
        raise


def _wait_for_cancel(api: Api, request: MigrationRequest, terms: Terms, other: Object, deadline: float) -> None:
    """Wait until a migration that is being cancelled is over, also in a task that does not wait for its own."""
    title = f"{request.title} cannot be migrated: migration {other['metadata']['name']} is being cancelled"
    reached, _seen = _follow(api, request, terms, other, deadline)
    if not reached.verdict.done:
        raise TimedOut(
            f"{title}, and still not over after {terms.wait_timeout_seconds} s", **_facts(api, request, other)
        )


def _cancel(api: Api, request: MigrationRequest, terms: Terms, done: Done, deadline: float) -> Done:
    migration = done.before or {}
    name, uid = migration["metadata"]["name"], migration["metadata"].get("uid")
    resource = MIGRATION.resource(request.namespace, terms.api_version)
    if not migration["metadata"].get("deletionTimestamp"):
        options = {"preconditions": {"uid": uid}}
        is_there = api.delete(resource, name, options, dry_run=terms.check_mode)
        done = done._replace(changed=is_there, method="delete" if is_there else None)
    if terms.check_mode or not terms.wait:
        return done._replace(after=None)
    reached, latest = _follow(api, request, terms, migration, deadline)
    if not reached.verdict.done:
        facts = {"changed": done.changed, **_facts(api, request, latest)}
        reason = reached.trouble or facts["reason"]
        text = f"{resource.title(name)} was cancelled and is not over after {terms.wait_timeout_seconds} s: {reason}"
        raise TimedOut(text, **facts)
    vmi = api.get(kinds.instances(request.namespace, terms.api_version), request.name)
    return done._replace(after=latest, vmi=vmi, is_waited=True)


def _wait_for_end(api: Api, request: MigrationRequest, terms: Terms, done: Done, deadline: float) -> Done:
    """Wait until a migration is over; raise with its status unless it succeeded."""
    migration = done.after or {}
    source = decide.node_of(done.vmi) if terms.fail_fast else None
    reached, latest = _follow(api, request, terms, migration, deadline, source=source)
    title = MIGRATION.resource(request.namespace).title(migration["metadata"]["name"])
    is_well = migration_status.phase(reached.obj) == migration_status.SUCCEEDED
    with api.bounded(max(deadline, time.monotonic() + 10)):  # time to read the result
        if reached.verdict.done:
            vmi = api.get(kinds.instances(request.namespace, terms.api_version), request.name)
            if is_well or (reached.obj is None and migration_status.has_moved(migration, vmi)):
                return done._replace(after=latest, vmi=vmi, is_waited=True)
        facts = {"changed": done.changed, **_facts(api, request, latest)}
    where = f"; {request.title} is on node {facts['node']}" if facts["node"] else ""
    if reached.obj is None and reached.verdict.done:
        raise VirtError(
            f"{title} was cancelled (somebody deleted it) in phase {migration_status.phase_text(latest)}{where}",
            **facts,
        )
    reason = "" if facts["reason"] == migration_status.nothing_but_phase(latest) else f": {facts['reason']}"
    if reached.verdict.done:
        raise VirtError(f"{title} failed{reason or ', for an unknown reason'}{where}", **facts)
    if reached.verdict.hopeless:
        raise VirtError(
            f"{title} will not succeed: {reached.verdict.hopeless}{where}. It continues; cancel it (state=absent)",
            **{**facts, "reason": reached.verdict.hopeless},
        )
    reason = f": its status could not be read ({reached.trouble})" if reached.trouble else reason
    raise TimedOut(
        f"{title} is not over after {terms.wait_timeout_seconds} s, it is"
        f" {migration_status.phase_text(latest)}{reason}{where}. It continues; wait for"
        " it (kubevirt_migration_info with wait=true), or cancel it (state=absent)",
        **facts,
    )


def _follow(
    api: Api, request: MigrationRequest, terms: Terms, migration: Object, deadline: float, *, source: str | None = None
) -> tuple[Reached, Object]:
    """Wait until a migration is over or gone. Return the result and the newest version of the migration.

    source: the node that the machine leaves, to end the wait when the target Pod is stuck; None: wait all the same.
    """
    name, uid = migration["metadata"]["name"], migration["metadata"].get("uid")
    latest = migration
    stuck: Stuck | None = None

    def look(_names: list[str]) -> None:
        nonlocal stuck
        if source is not None:
            search = Search(api, request.namespace)
            stuck = search.of_target(migration_status.target_pods(api, request.namespace, migration), source)

    def judge(_name: str, obj: Object | None) -> Verdict:
        nonlocal latest
        if obj is None or obj["metadata"].get("uid") != uid:
            return Verdict(done=True)
        latest = obj
        missing = f"it is {migration_status.phase_text(obj)}"
        return Verdict(done=migration_status.is_over(obj), missing=missing, stuck=stuck)

    resource = MIGRATION.resource(request.namespace, terms.api_version)
    reached = Waiter(api, resource, judge, deadline=deadline, prepare=look).until([name])[name]
    # This migration was deleted, and another one has its name.
    if reached.obj is not None and reached.obj["metadata"].get("uid") != uid:
        reached = Reached(None, reached.verdict)
    return reached, latest


def _facts(api: Api, request: MigrationRequest, migration: Object) -> dict[str, Any]:
    try:
        vmi = api.get(kinds.instances(request.namespace), request.name)
    except VirtError:
        vmi = None
    return migration_status.explain(api, request.namespace, migration, vmi)
