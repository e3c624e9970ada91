# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message for a write that the API server refused: its error, and what a user can do about it. Pure."""

from __future__ import annotations

import re

from controlplane.engine.errors import ApiError, Forbidden, Invalid, Throttled, WebhookFailed

_FORBIDDEN = (
    (r"exceeded quota", "raise the namespace's ResourceQuota, or delete something that it counts"),
    (r"failed quota", "set in domain.resources what the namespace's ResourceQuota asks for"),
    (r"usage per (Container|Pod)|limit to request ratio", "change domain.resources, or the namespace's LimitRange"),
    (r"no PriorityClass with name", "create it, or correct priorityClassName"),
    (
        r"violates PodSecurity",
        "look at the cluster's mutating webhooks: launchers fit the profile restricted until something changes them",
    ),
    (r"being terminated", "nothing can be created in a namespace that is being deleted"),
    (r"cannot \S+ resource", "apply the control plane's manifests again: they give virt-controller this right"),
)
"""Words of the API server's admission plug-ins, and what to do. A 403 is rarely about permissions."""
_OTHER_FORBIDDEN = "check the namespace's ResourceQuota, and the permissions of virt-controller's account"
_ABOVE_LIMIT = re.compile(r"must be less than or equal to (cpu|memory|ephemeral-storage) limit")
_LIMIT_RANGE = "set both in domain.resources, or change the default limit of the namespace's LimitRange"


def explain_refusal(error: ApiError, *, made_of: str = "") -> str:
    """Return the server's error and the remedy. made_of: the field that a refused new object was built from."""
    remedy = _remedy(error, made_of)
    return f"{error}; {remedy}" if remedy else str(error)


def _remedy(error: ApiError, made_of: str) -> str:
    match error:
        case Forbidden():
            rows = (remedy for words, remedy in _FORBIDDEN if re.search(words, str(error)))
            return next(rows, _OTHER_FORBIDDEN)
        case Invalid() if made_of:
            return _LIMIT_RANGE if _ABOVE_LIMIT.search(str(error)) else f"correct {made_of}"
        case Invalid():
            return "compare the installed CRDs with the control plane's version"
        case WebhookFailed():
            return "check the Pods that serve that webhook, and its configuration"
        case Throttled():
            return "virt-controller retries it"
    return ""
