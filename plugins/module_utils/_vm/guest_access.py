# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals of what leads to a guest (its console, screen and ports) as errors: one prefix, and what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._client.errors import ApiError

START = "start it (kubevirt_vm with state=started), and wait until it runs (wait=true)"
UNPAUSE = "unpause it (kubevirt_vm with state=unpaused)"
_REMEDIES = {400: START, 404: START, 503: "look at the control plane's Pods, and try again"}
"""What to do about a refusal, by its HTTP status. Of 401 and 403 the refusal itself says it."""
_SERVERS_PREFIX = re.compile(r": (?:cannot take a screenshot|console|portforward) of virtualmachineinstance \S+: ")
"""Of virt-api, for clients that add none: the machine, which the module names as well."""


def explained(error: ApiError, remedies: Mapping[int, str] | None = None) -> ApiError:
    """Return the error with what to do, by its HTTP status. remedies: further ones, or others."""
    message = _SERVERS_PREFIX.sub(": ", error.message, count=1).rstrip()  # a plain text ends with its line
    is_answer = "server_reason" in error.facts  # else the cluster has no KubeVirt
    remedy = {**_REMEDIES, **(remedies or {})}.get(error.status)
    if remedy and is_answer and not is_lasting(error):
        message = f"{message}; {remedy}"
    return type(error)(message, **error.facts)


def is_lasting(error: ApiError) -> bool:
    """Tell whether waiting changes nothing, because a field of the machine's spec is the cause. It says what to do."""
    return bool(error.facts.get("causes"))
