# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task's request for one object, checked without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..._client import paths
from ..._client.errors import BadArgument
from ...kubevirt_api import names, run_strategies
from ...kubevirt_api.desired import run_strategy
from .. import field_path
from ..kinds import VM, Kind
from ..merge import overlay
from . import argspec, manifest

UNFREEZE_SECONDS = 300
"""Default time after which frozen file systems are thawed, as in virtctl."""


class StateOption(NamedTuple):
    """An option that only some states use."""

    states: tuple[str, ...]
    meaning: str


STATE_OPTIONS = {
    "grace_period_seconds": StateOption(("stopped", "restarted"), "how long a guest may take to shut down"),
    "delete_options": StateOption(("absent",), "how to delete"),
    "restart": StateOption(("present", "started"), "whether a change may restart a machine"),
    "unfreeze_timeout": StateOption(("frozen",), "how long state=frozen lasts at most"),
}
"""Refused beside other states, where they would mislead. Options of the machine are accepted beside any state: a play
can keep them and change the state."""
INTERNAL = (
    ("metadata", "annotations", names.DECLARED_ITEMS),
    ("metadata", "annotations", names.TEMPLATE_HASH),
    ("metadata", "annotations", names.FIXED_TEMPLATE_HASH),
    *((*path, "annotations", names.POOL_TEMPLATE) for path in (("metadata",), ("spec", "template", "metadata"))),
)
"""Annotations that only this collection reads. They are long, and no result shows them."""
_STARTS_UNPAUSED = (run_strategies.ONCE, run_strategies.RERUN_ON_FAILURE)
"""Strategies with which the control plane itself makes the first start."""


def _names_and_sizes(options: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """Yield the text options that are no choice and no content (no_log): an empty one is a mistake."""
    for name, option in options.items():
        if option["type"] == "str" and "choices" not in option and not option.get("no_log"):
            yield parent + name
        yield from _names_and_sizes(option.get("options", {}), f"{name}.")


_NOT_EMPTY = tuple(_names_and_sizes(argspec.machine()))


class VmRequest(NamedTuple):
    """One object and the state that it should have."""

    state: str
    namespace: str
    name: str | None
    """None: the server chooses a name that begins with generateName."""
    declaration: manifest.Declaration
    """The object as declared, with apiVersion, kind and metadata. A field that is None is to be removed."""
    has_machine: bool
    """The options describe a machine, so the object can be created from them."""
    is_complete: bool
    """A definition: fields that were applied earlier and are missing now are removed."""
    options: Mapping[str, frozenset[str]] = MappingProxyType({})
    """The options of the task, each with the names of its entries if it is a list."""
    removals: tuple[Any, ...] = ()
    """The request.item_names.Removal of each list item that the task removes."""
    force: bool = False
    delete_options: Mapping[str, Any] = MappingProxyType({})
    grace_period_seconds: int | None = None
    start_paused: bool = False
    """A start leaves the guest paused."""
    unfreeze_timeout_seconds: int = UNFREEZE_SECONDS
    restarts: bool = False
    """Restart a running machine if its declaration needs it."""
    kind: Kind = VM

    @property
    def title(self) -> str:
        """Return kind, namespace and name for messages."""
        name = self.name or self.declaration.obj["metadata"].get("generateName")
        return f"{self.kind.name} {self.namespace}/{name}"


class Terms(NamedTuple):
    """The options that hold for all objects of a task."""

    api_version: str = names.API_VERSION
    check_mode: bool = False
    diff: bool = False
    wait: bool = False
    wait_timeout_seconds: int = 120
    hidden: tuple[tuple[str, ...], ...] = INTERNAL
    """Paths of the fields that results omit, and that count for no change."""
    condition: tuple[str, str, str | None] | None = None
    """Type, status and reason of a condition to wait for."""
    wait_for_claims: bool = False
    """A deletion waits until the claims of the VM's DataVolumes are gone."""
    fail_fast: bool = False
    """End the wait for a machine in a state that does not end by itself."""
    shows_console: bool = False
    """The error of a wait shows the last lines of the guest."""


def terms_from(params: Mapping[str, Any], *, check_mode: bool, diff: bool, kind: Kind = VM) -> Terms:
    """Read the options that hold for all objects."""
    for option in ("wait_timeout", "wait_sleep"):
        if params.get(option) is not None and params[option] <= 0:
            raise BadArgument(f"{option} is {params[option]}: it must be positive, in seconds")
    return Terms(
        api_version=params.get("api_version") or kind.api_version,
        check_mode=check_mode,
        diff=diff,
        wait=bool(params.get("wait")),
        wait_timeout_seconds=params.get("wait_timeout") or 120,
        hidden=(*INTERNAL, *(tuple(field_path.parse(text)) for text in params.get("hidden_fields") or ())),
        condition=_condition(params),
        wait_for_claims=bool(params.get("wait_for_claims")),
        fail_fast=params.get("fail_fast") is not False,
    )


def _condition(params: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
    condition = params.get("wait_condition")
    if not condition:
        return None
    if not params.get("wait"):
        raise BadArgument("wait_condition says what to wait for; set wait=true, or leave it out")
    if params.get("state") == "absent":
        raise BadArgument(
            "wait_condition: with state=absent no object is left that could have a condition; leave it out"
        )
    return condition["type"], condition.get("status") or "True", condition.get("reason")


def request_of(params: Mapping[str, Any], kind: Kind = VM) -> VmRequest:
    """Return the request of a task for one object."""
    request = build_request(params, "", kind)
    if problems := useless_options([params]):
        raise BadArgument(problems[0])
    return request


def useless_options(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a problem for each option that no entry's state uses. One entry that uses an option is enough."""
    problems = []
    for option, use in STATE_OPTIONS.items():
        states = {entry.get("state") or "present" for entry in entries if _is_set(entry.get(option))}
        if states and states.isdisjoint(use.states):
            current = ", ".join(f"state={state}" for state in sorted(states))
            usable = " or ".join(f"state={state}" for state in use.states)
            problems.append(
                f"{option} says {use.meaning}; with {current} it has no effect: set {usable}, or leave it out"
            )
    return problems


def _is_set(value: Any) -> bool:
    return any(inner is not None for inner in value.values()) if isinstance(value, Mapping) else value is not None


def build_request(params: Mapping[str, Any], prefix: str, kind: Kind) -> VmRequest:
    """Return one request. prefix: what error messages begin with."""
    state = params.get("state") or "present"
    try:
        declaration = manifest.build(params, kind)
    except BadArgument as problem:
        raise BadArgument(f"{prefix}{_title(params, kind)}{problem.message}") from problem
    try:
        _check(params, declaration.obj, state, kind)
    except BadArgument as problem:
        raise BadArgument(prefix + problem.message) from problem
    metadata = declaration.obj["metadata"]
    return VmRequest(
        state=state,
        namespace=metadata["namespace"],
        name=metadata.get("name"),
        declaration=declaration,
        has_machine=manifest.has_machine(params),
        is_complete=bool((params.get("definition") or {}).get("spec")),
        options={option: _entry_names(value) for option, value in params.items() if value},
        removals=_removals(params, declaration.obj, kind),
        force=bool(params.get("force")),
        delete_options=_delete_options(params.get("delete_options") or {}),
        grace_period_seconds=params.get("grace_period_seconds"),
        start_paused=bool(params.get("start_paused")),
        unfreeze_timeout_seconds=UNFREEZE_SECONDS if (timeout := params.get("unfreeze_timeout")) is None else timeout,
        restarts=params.get("restart") == "if_required",
        kind=kind,
    )


def _title(params: Mapping[str, Any], kind: Kind) -> str:
    metadata = (params.get("definition") or {}).get("metadata")
    defined = metadata if isinstance(metadata, dict) else {}
    name = params.get("name") or defined.get("name")
    namespace = params.get("namespace") or defined.get("namespace")
    return f"{kind.name} {namespace}/{name}: " if name and namespace else ""


def _check(params: Mapping[str, Any], declared: dict[str, Any], state: str, kind: Kind) -> None:
    _check_identity(declared["metadata"], state)
    if params.get("start_paused") and kind is VM:
        _check_start_paused(declared, state)
    for option in _NOT_EMPTY:
        parent, _dot, key = option.rpartition(".")
        if ((params.get(parent) or {}) if parent else params).get(key) == "":
            raise BadArgument(f"{option} is empty; leave it out, or write {{{{ ... | default(omit, true) }}}}")
    for option in ("replicas", "grace_period_seconds", "unfreeze_timeout"):
        if (params.get(option) or 0) < 0:
            raise BadArgument(f"{option} is {params[option]}: it must not be negative")
    if state == "restarted" and params.get("grace_period_seconds"):
        raise BadArgument("grace_period_seconds: a restart is either graceful (leave it out) or immediate (0)")


def _check_identity(metadata: Mapping[str, Any], state: str) -> None:
    if not metadata.get("namespace"):
        raise BadArgument("namespace is missing: give the option namespace, or metadata.namespace in the definition")
    paths.check_namespace("namespace", metadata["namespace"])
    if metadata.get("name"):
        paths.check_name("name", metadata["name"])
    elif not metadata.get("generateName"):
        raise BadArgument(
            "name is missing: give the option name (or generate_name), or metadata.name in the definition"
        )
    elif state != "present":
        raise BadArgument(f"generate_name names no existing object, so it cannot be {state}; give its name")


def _check_start_paused(declared: dict[str, Any], state: str) -> None:
    if state != "started":
        raise BadArgument(
            "start_paused says how state=started starts a guest; set that state, or declare startStrategy in spec"
        )
    if run_strategy(declared) in _STARTS_UNPAUSED:
        raise BadArgument(
            f"start_paused: a machine whose run strategy is {run_strategy(declared)} starts by itself, and not paused;"
            " declare startStrategy in spec instead"
        )


def _entry_names(value: Any) -> frozenset[str]:
    return frozenset(str(item["name"]) for item in value if "name" in item) if isinstance(value, list) else frozenset()


def _removals(params: Mapping[str, Any], declared: dict[str, Any], kind: Kind) -> tuple[Any, ...]:
    if not overlay.has_removals(declared):
        return ()
    from .item_names import removals_of  # few tasks remove an item

    return removals_of(params, kind)


def _delete_options(options: Mapping[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in options.items() if value is not None}
    if "preconditions" in result:
        result["preconditions"] = {key: value for key, value in result["preconditions"].items() if value is not None}
    return result
