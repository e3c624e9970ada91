# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for one object that describes machines, as a value; checked for what needs no cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .._client import paths
from .._client.errors import BadArgument
from ..kubevirt_api import names, run_strategies
from ..kubevirt_api.asked import run_strategy
from . import field_path, manifest
from .cluster import VM, Kind

PER_ENTRY = (
    "name", "generate_name", "namespace", "state", "definition", "annotations", "labels", "running", "run_strategy",
    "instancetype", "preference", "data_volume_templates", "spec", "cpu", "memory", "image", "cloud_init", "disks",
    "volumes", "interfaces", "networks", "eviction_strategy", "further_attempts", "run_timeout", "force",
    "delete_options", "grace_period_seconds", "start_paused", "unfreeze_timeout",
)  # fmt: skip
"""Options of an entry of `vms` or `vmis`, some of them of one kind only; those of the task stand in for what an entry
leaves out."""


UNFREEZE_SECONDS = 300
"""What is frozen is thawed by itself after so long, unless said otherwise; upstream's clients ask for as much."""
_SELF_STARTING = (run_strategies.ONCE, run_strategies.RERUN_ON_FAILURE)


class Use(NamedTuple):
    """What an option that only some states heed is for."""

    states: tuple[str, ...]
    says: str


USES = {
    "grace_period_seconds": Use(("stopped", "restarted"), "how long a guest may take to shut down"),
    "delete_options": Use(("absent",), "how to delete"),
    "unfreeze_timeout": Use(("frozen",), "how long state=frozen lasts at most"),
}
"""Options that say how an end comes, or how long a state lasts: beside other states they would mislead. Those of a
machine may stand beside any, for a play that keeps them and switches the state."""
_NOT_EMPTY = ("image", "memory", "cpu.model", "cloud_init.user_data_secret", "cloud_init.network_data_secret")


class VmRequest(NamedTuple):
    """One VM and what should become of it."""

    state: str
    namespace: str
    name: str | None
    """None: the server makes one from generateName."""
    declared: manifest.Declared
    """The object as declared, with apiVersion, kind and metadata; None inside means absent."""
    has_machine: bool
    """It says what the machine is, so that it can be created from it."""
    is_whole: bool
    """It is all that the user wants to say: what was applied earlier and is missing now is taken away."""
    options: Mapping[str, frozenset[str]] = MappingProxyType({})
    """The options that were given, each with the names of its entries; none of one that is no list."""
    force: bool = False
    delete_options: Mapping[str, Any] = MappingProxyType({})
    grace_period_seconds: int | None = None
    start_paused: bool = False
    """A start that this request asks for leaves the guest paused."""
    unfreeze_timeout_seconds: int = UNFREEZE_SECONDS
    kind: Kind = VM

    @property
    def title(self) -> str:
        """Return kind, namespace and name for messages."""
        return f"{self.kind.name} {self.namespace}/{self.name or self.declared.vm['metadata'].get('generateName')}"


class Terms(NamedTuple):
    """What holds for all VMs of a task."""

    api_version: str = names.API_VERSION
    check_mode: bool = False
    diff: bool = False
    wait: bool = False
    wait_timeout_seconds: int = 120
    hidden: tuple[tuple[str, ...], ...] = ()
    condition: tuple[str, str, str | None] | None = None
    """Type, status and reason of a condition to wait for as well."""
    wait_for_claims: bool = False
    """A deletion is waited for until the claims that go with a VM are gone."""


def terms_from(params: Mapping[str, Any], *, check_mode: bool, diff: bool, kind: Kind = VM) -> Terms:
    """Read the task's own options."""
    for option in ("wait_timeout", "wait_sleep"):
        if params.get(option) is not None and params[option] <= 0:
            raise BadArgument(f"{option} is {params[option]}: it must be positive, in seconds")
    return Terms(
        api_version=params.get("api_version") or kind.api_version,
        check_mode=check_mode,
        diff=diff,
        wait=bool(params.get("wait")),
        wait_timeout_seconds=params.get("wait_timeout") or 120,
        hidden=tuple(tuple(field_path.parse(text)) for text in params.get("hidden_fields") or ()),
        condition=_condition(params),
        wait_for_claims=bool(params.get("wait_for_claims")),
    )


def _condition(params: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
    wanted = params.get("wait_condition")
    if not wanted:
        return None
    if not params.get("wait"):
        raise BadArgument("wait_condition says what to wait for; set wait=true, or leave it out")
    if params.get("state") == "absent":
        raise BadArgument("wait_condition: with state=absent nothing is left that could have a condition; leave it out")
    return wanted["type"], wanted.get("status") or "True", wanted.get("reason")


def requests_from(params: Mapping[str, Any], kind: Kind = VM) -> list[VmRequest]:
    """Return one request per object of the kind; every problem of every one is reported at once."""
    if not kind.entries or params.get(kind.entries) is None:
        found = request_from(params, "", kind)
        if problems := useless([params]):
            raise BadArgument(problems[0])
        return [found]
    from .entries import requests_of  # one by one is how most tasks go

    return requests_of(params, kind)


def useless(asked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which options none of these makes use of: machines of a task may share one that only some heed."""
    problems = []
    for option, use in USES.items():
        states = {one.get("state") or "present" for one in asked if _is_given(one.get(option))}
        if states and states.isdisjoint(use.states):
            there = ", ".join(f"state={one}" for one in sorted(states))
            wanted = " or ".join(f"state={one}" for one in use.states)
            problems.append(f"{option} says {use.says}; with {there} it has no effect: set {wanted}, or leave it out")
    return problems


def _is_given(value: Any) -> bool:
    return any(one is not None for one in value.values()) if isinstance(value, Mapping) else value is not None


def request_from(params: Mapping[str, Any], where: str, kind: Kind) -> VmRequest:
    """Return one request; `where` comes before what is wrong with it."""
    state = params.get("state") or "present"
    try:
        declared = manifest.build(params, kind)
    except BadArgument as problem:
        raise BadArgument(f"{where}{_whose(params, kind)}{problem.message}") from problem
    try:
        _check(params, declared.vm, state, kind)
    except BadArgument as problem:
        raise BadArgument(where + problem.message) from problem
    metadata = declared.vm["metadata"]
    return VmRequest(
        state=state,
        namespace=metadata["namespace"],
        name=metadata.get("name"),
        declared=declared,
        has_machine=manifest.has_machine(params),
        is_whole=bool((params.get("definition") or {}).get("spec")),
        options={option: _entries(params[option]) for option in PER_ENTRY if params.get(option)},
        force=bool(params.get("force")),
        delete_options=_delete_options(params.get("delete_options") or {}),
        grace_period_seconds=params.get("grace_period_seconds"),
        start_paused=bool(params.get("start_paused")),
        unfreeze_timeout_seconds=UNFREEZE_SECONDS if (timeout := params.get("unfreeze_timeout")) is None else timeout,
        kind=kind,
    )


def _whose(params: Mapping[str, Any], kind: Kind) -> str:
    metadata = (params.get("definition") or {}).get("metadata")
    inside = metadata if isinstance(metadata, dict) else {}
    name = params.get("name") or inside.get("name")
    namespace = params.get("namespace") or inside.get("namespace")
    return f"{kind.name} {namespace}/{name}: " if name and namespace else ""


def _check(params: Mapping[str, Any], built: dict[str, Any], state: str, kind: Kind) -> None:
    _check_identity(built["metadata"], state)
    if params.get("start_paused") and kind is VM:
        _check_start(built, state)
    for option in _NOT_EMPTY:
        above, _dot, last = option.rpartition(".")
        if ((params.get(above) or {}) if above else params).get(last) == "":
            raise BadArgument(
                f"{option} is empty; leave it out, and of a variable write {{{{ ... | default(omit, true) }}}}"
            )
    for option in ("replicas", "grace_period_seconds", "unfreeze_timeout"):
        if (params.get(option) or 0) < 0:
            raise BadArgument(f"{option} is {params[option]}: it must not be negative")
    grace = params.get("grace_period_seconds")
    if state == "restarted" and grace:
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
        raise BadArgument(f"generate_name names nothing that is there, so it cannot be {state}; give its name")


def _check_start(built: dict[str, Any], state: str) -> None:
    if state != "started":
        raise BadArgument(
            "start_paused says how state=started starts a guest; set that state, or declare startStrategy in spec"
        )
    if run_strategy(built) in _SELF_STARTING:
        raise BadArgument(
            f"start_paused: a machine whose run strategy is {run_strategy(built)} starts by itself, and not paused;"
            " declare startStrategy in spec instead"
        )


def _entries(value: Any) -> frozenset[str]:
    """Return the names of what a list says something of."""
    return frozenset(str(one["name"]) for one in value if "name" in one) if isinstance(value, list) else frozenset()


def _delete_options(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in options.items() if value is not None}
    if "preconditions" in given:
        given["preconditions"] = {key: value for key, value in given["preconditions"].items() if value is not None}
    return given
