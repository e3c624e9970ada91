# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The AdmissionReviews that we respond with. Pure."""

from __future__ import annotations

from controlplane.virt_api.http.response import Json, Response, document


def allowed(uid: str) -> Response:
    """Allow the request with this UID."""
    return _review({"uid": uid, "allowed": True})


def denied(uid: str, code: int, reason: str, message: str) -> Response:
    """Deny the request with this UID; code and reason are those of the Status that the user gets."""
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return _review({"uid": uid, "allowed": False, "status": status})


def _review(response: Json) -> Response:
    return document({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
