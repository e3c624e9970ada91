# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options vms and vmis: one request for each entry, and all problems of all entries in one error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._client.errors import BadArgument
from ..kinds import Kind
from .vm_request import VmRequest, build_request, useless_options


def requests_of(params: Mapping[str, Any], kind: Kind) -> list[VmRequest]:
    """Return one request per entry."""
    requests, problems = [], []
    entries = [_with_task_options(entry, params) for entry in params[kind.list_option]]
    for index, entry in enumerate(entries):
        try:
            requests.append(build_request(entry, f"{kind.list_option}[{index}]: ", kind))
        except BadArgument as problem:
            problems.append(problem.message)
    problems += useless_options(entries)
    names: set[tuple[str, str]] = set()
    for request in requests:
        key = (request.namespace, request.name or "")
        if request.name and key in names:
            problems.append(f"{kind.list_option}: {request.title} is listed twice")
        names.add(key)
    if problems:
        raise BadArgument("; ".join(problems))
    return requests


def _with_task_options(entry: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task's options overridden by those of an entry."""
    options = {**params, **{key: value for key, value in entry.items() if value is not None}}
    metadata = (entry.get("definition") or {}).get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if namespace and not entry.get("namespace"):
        options["namespace"] = namespace
    if entry.get("running") is not None or entry.get("run_strategy") is not None:
        options.update({key: entry.get(key) for key in ("running", "run_strategy")})  # either overrides both
    return options
