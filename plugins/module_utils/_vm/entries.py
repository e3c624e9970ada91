# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options vms and vmis: one request for each entry, and what is wrong with all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.errors import BadArgument
from .cluster import Kind
from .request import PER_ENTRY, VmRequest, request_from, useless


def requests_of(params: Mapping[str, Any], kind: Kind) -> list[VmRequest]:
    """Return one request per entry."""
    requests, problems = [], []
    asked = [_filled(entry, params) for entry in params[kind.entries]]
    for index, one in enumerate(asked):
        try:
            requests.append(request_from(one, f"{kind.entries}[{index}]: ", kind))
        except BadArgument as problem:
            problems.append(problem.message)
    problems += useless(asked)
    seen: set[tuple[str, str]] = set()
    for request in requests:
        key = (request.namespace, request.name or "")
        if request.name and key in seen:
            problems.append(f"{kind.entries}: {request.title} is listed twice")
        seen.add(key)
    if problems:
        raise BadArgument("; ".join(problems))
    return requests


def _filled(entry: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with the task's options where it leaves something out."""
    whole = {key: entry[key] if entry.get(key) is not None else params.get(key) for key in PER_ENTRY}
    metadata = (entry.get("definition") or {}).get("metadata")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    if own and not entry.get("namespace"):
        whole["namespace"] = own
    if entry.get("running") is not None or entry.get("run_strategy") is not None:
        whole.update({key: entry.get(key) for key in ("running", "run_strategy")})  # one replaces the other
    return whole
