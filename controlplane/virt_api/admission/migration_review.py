# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of new migrations, as far as they depend on other objects: can the VMI be migrated now (migratable)?

What depends on the migration alone is validated by another webhook.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import msgspec

from controlplane.api.objects.decode import DecodeError
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError
from controlplane.http_server.quotas import Quota
from controlplane.kube.client import Client
from controlplane.virt_api.admission.migratable import why_not_migratable
from controlplane.virt_api.admission.responses import allowed, denied
from controlplane.virt_api.http.response import Response, failure

log = logging.getLogger(__name__)

MAX_MIGRATION_BYTES = 640 * 1024
"""The largest migration, and the review around it."""
MAX_NAME = 253
MAX_CONCURRENT = 16
MAX_CONCURRENT_OF_PEER = 12
DENIED = (
    "the VMI cannot be migrated now: it does not exist, is over, is not live-migratable, or an in-flight migration "
    "detected; see its status, its condition LiveMigratable and the migrations of its namespace"
)
"""For callers that are not known to be the API server."""


class _Spec(msgspec.Struct, rename="camel"):
    vmi_name: str = ""


class _Migration(msgspec.Struct):
    spec: _Spec | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    namespace: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def vmi(self) -> Key | None:
        """The VMI to migrate; None when its name is invalid, which the other webhook reports."""
        try:
            migration = _migration_decoder.decode(self.object)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        name = migration.spec.vmi_name if migration.spec is not None else ""
        return Key(self.namespace, name) if 0 < len(name) <= MAX_NAME and name not in {".", ".."} else None


class _Review(msgspec.Struct):
    request: _Request


_decoder = msgspec.json.Decoder(_Review)
_migration_decoder = msgspec.json.Decoder(_Migration)


@dataclass(frozen=True, slots=True)
class MigrationReviews:
    """Answers reviews of VirtualMachineInstanceMigrations that are being created."""

    client: Client
    _concurrent: Quota = field(default_factory=lambda: Quota(MAX_CONCURRENT, MAX_CONCURRENT_OF_PEER))

    async def answer(self, peer: str, body: bytes, *, is_authenticated: bool) -> Response:
        """Answer one review. BusyError when too many are under way.

        is_authenticated: the peer is an API server. Any other peer learns that a VMI cannot be migrated, but not why.
        """
        try:
            request = _decoder.decode(body).request
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return failure(400, f"not an AdmissionReview: {error}")
        with self._concurrent.reserve(peer, 1, "too many reviews of migrations are under way"):
            return await self._review(request, is_authenticated=is_authenticated)

    async def _review(self, request: _Request, *, is_authenticated: bool) -> Response:
        vmi = request.vmi
        if vmi is None:
            return allowed(request.uid)
        try:
            because = await why_not_migratable(self.client, vmi)
        except (ApiError, DecodeError) as error:
            log.warning("cannot review a migration", extra={"key": vmi, "because": error})
            why = str(error) if is_authenticated else "see its log"
            message = f"virt-api cannot decide whether the VMI can be migrated: {why}"
            return denied(request.uid, 500, "InternalError", message)
        log.info("migration reviewed", extra={"key": vmi, "because": because})
        if because is None:
            return allowed(request.uid)
        return denied(request.uid, 400, "BadRequest", because if is_authenticated else DENIED)
