# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message for a write that the API server refused: its error, and what a user can do about it. Pure."""

from __future__ import annotations

from controlplane.engine.errors import ApiError, Forbidden, Invalid, Throttled, WebhookFailed


def explain_refusal(error: ApiError, *, is_create: bool) -> str:
    """Return the server's error and the remedy. is_create: the refused object was built from spec.template."""
    remedy = _remedy(error, is_create=is_create)
    return f"{error}; {remedy}" if remedy else str(error)


def _remedy(error: ApiError, *, is_create: bool) -> str:
    match error:
        case Forbidden():
            return "check the namespace's ResourceQuota, and the permissions of virt-controller's account"
        case Invalid() if is_create:
            return "correct spec.template"
        case Invalid():
            return "compare the installed CRDs with the control plane's version"
        case WebhookFailed():
            return "check the Pods that serve that webhook, and its configuration"
        case Throttled():
            return "virt-controller retries it"
    return ""
