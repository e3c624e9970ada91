# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell around the admission decision: bytes in, an AdmissionReview out, whatever happens.

The decision and the wire format are in controlplane.api. A bug in them is a refusal that says so: the
hooks fail closed, and a traceback helps nobody who wanted a machine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from controlplane.api.admission.review import (
    UnreadableReviewError,
    parse_review,
    render_mutation,
    render_validation,
)
from controlplane.api.admission.verdict import Settings, review
from controlplane.virt_api.http.response import Answer, document, failure
from controlplane.virt_api.http.routes import ToHook

log = logging.getLogger(__name__)

MAX_REVIEW_BYTES = 3 * 1024 * 1024  # an object of 1.5 MiB twice: as it is and as it was


@dataclass(slots=True)
class Counters:
    """What happened so far, counted in any thread."""

    reviews: int = 0
    refused: int = 0
    unreadable: int = 0
    bugs: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, what: Literal["reviews", "refused", "unreadable", "bugs"]) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)


@dataclass(slots=True)
class Admission:
    """Answers reviews under the cluster's current configuration, in whatever thread it is asked in."""

    settings: Callable[[], Settings]
    counters: Counters = field(default_factory=Counters)

    def answer(self, route: ToHook, body: bytes) -> Answer:
        """Answer one AdmissionReview. Never raises."""
        self.counters.count("reviews")
        try:
            return self._judge(route, body)
        except UnreadableReviewError as error:
            self.counters.count("unreadable")
            return document(error.answer) if error.answer is not None else failure(400, str(error))
        except Exception:
            self.counters.count("bugs")
            log.exception("admission failed", extra={"stage": route.stage})
            return _bug(body)

    def _judge(self, route: ToHook, body: bytes) -> Answer:
        request = parse_review(body)
        verdict = review(request, self.settings())
        if not verdict.allowed:
            self.counters.count("refused")
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


def _bug(body: bytes) -> Answer:
    """Refuse with a clean 500; the API server relays it only when it carries the request's UID."""
    message = "admission failed by an error of its own; nothing was changed. The log of virt-api says more"
    try:
        uid = _uid_decoder.decode(body).request.uid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return failure(500, message)
    status = {"status": "Failure", "code": 500, "reason": "InternalError", "message": message}
    response = {"uid": uid, "allowed": False, "status": status}
    return document({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
