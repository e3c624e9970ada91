# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of sessions: who, what, how long, how many bytes, why it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubevirt_api.close_codes import LOST

from controlplane.kube.access_review import User
from controlplane.links.relay import Close, Transferred
from controlplane.virt_api.http.routes import SubresourceRoute

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AuditedSession:
    """What is known of a session when it ends."""

    transferred: Transferred = field(default_factory=Transferred)
    end: Close = field(default_factory=lambda: Close(LOST, "virt-api ends, or has failed"))


@contextmanager
def audited(route: SubresourceRoute, user: User) -> Iterator[AuditedSession]:
    """Log the beginning and the end of a session, however it ends."""
    access, session, began = route.access, AuditedSession(), time.monotonic()
    path = "/".join((access.subresource, *route.arguments))
    extra = {"key": f"{access.namespace}/{access.name}", "path": path, "user": user.name}
    log.info("stream opened", extra=extra)
    try:
        yield session
    finally:
        copied = session.transferred
        sizes = {"bytes_to_client": copied.to_client, "bytes_from_client": copied.from_client}
        seconds = round(time.monotonic() - began, 1)
        log.info("stream ended", extra={**extra, **sizes, "because": session.end.reason, "seconds": seconds})
