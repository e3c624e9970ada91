# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of our objects: bytes in, an AdmissionReview out, whatever happens.

The decision and the wire format are in controlplane.api. A bug in them is a refusal that says so: the webhooks fail
closed, and a traceback does not help the user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from controlplane.api.admission.review import (
    UnreadableReviewError,
    parse_review,
    render_mutation,
    render_validation,
)
from controlplane.api.admission.verdict import Settings, review
from controlplane.virt_api.admission.responses import denied
from controlplane.virt_api.http.response import Response, document, failure
from controlplane.virt_api.http.routes import WebhookRoute

log = logging.getLogger(__name__)

MAX_REVIEW_BYTES = 3 * 1024 * 1024  # the new and the old object, 1.5 MiB each


@dataclass(frozen=True, slots=True)
class Admission:
    """Answers reviews under the cluster's current configuration. May be called in any thread."""

    settings: Callable[[], Settings]

    def answer(self, route: WebhookRoute, body: bytes) -> Response:
        """Answer one AdmissionReview. Never raises."""
        try:
            return self._review(route, body)
        except UnreadableReviewError as error:
            return document(error.answer) if error.answer is not None else failure(400, str(error))
        except Exception:
            log.exception("admission failed", extra={"stage": route.stage})
            return _internal_error(body)

    def _review(self, route: WebhookRoute, body: bytes) -> Response:
        request = parse_review(body)
        verdict = review(request, self.settings())
        if not verdict.allowed:
            log.info(
                "refused",
                extra={
                    "kind": request.kind,
                    "operation": request.operation,
                    "user": request.user,
                    "fields": [problem.path for problem in verdict.problems],
                },
            )
        render = render_mutation if route.stage == "mutate" else render_validation
        return document(render(request, verdict))


class _RequestUid(msgspec.Struct):
    uid: str = ""


class _ReviewUid(msgspec.Struct):
    request: _RequestUid


_uid_decoder = msgspec.json.Decoder(_ReviewUid)


def _internal_error(body: bytes) -> Response:
    """Refuse with a 500; the API server relays its message only when it carries the request's UID."""
    message = "admission failed by an internal error of virt-api; nothing was changed. See the log of virt-api"
    try:
        uid = _uid_decoder.decode(body).request.uid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return failure(500, message)
    return denied(uid, 500, "InternalError", message)
