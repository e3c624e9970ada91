# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of new migrations, as far as the cluster must be asked: can the instance be migrated (migratable)?

What can be told from the migration alone is admission's, by another hook.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from controlplane.api.objects.decode import DecodeError
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError
from controlplane.http_server.quotas import Parts, Shares
from controlplane.kube.client import Client
from controlplane.virt_api.admission.migratable import why_not
from controlplane.virt_api.concurrency import BusyError
from controlplane.virt_api.http.response import Answer, Json, document, failure

log = logging.getLogger(__name__)

MAX_MIGRATION_BYTES = 640 * 1024
"""An object as large as one may be, and what is around it."""
MAX_NAME = 253
AT_ONCE = 16
"""Reviews that are read or under way, shared by peer: each may have MAX_MIGRATION_BYTES."""
AT_ONCE_OF_A_NAMESPACE = 4
"""Of a peer's: all users come by the one API server."""
HIDDEN = (
    "the VMI cannot be migrated now: it does not exist, is over, is not live-migratable, or an in-flight migration "
    "detected; its status and its condition LiveMigratable say which, and so do the migrations of its namespace"
)
"""For who has not proven to be the API server."""


class _Spec(msgspec.Struct, rename="camel"):
    vmi_name: str = ""


class _Migration(msgspec.Struct):
    spec: _Spec | None = None


class _Asked(msgspec.Struct, rename="camel"):
    uid: str
    namespace: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def vmi(self) -> Key | None:
        """The instance that is to move; None where the other hook says what is wrong with its name."""
        try:
            migration = _migration_decoder.decode(self.object)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        name = migration.spec.vmi_name if migration.spec is not None else ""
        return Key(self.namespace, name) if 0 < len(name) <= MAX_NAME and name not in {".", ".."} else None


class _Review(msgspec.Struct):
    request: _Asked


_decoder = msgspec.json.Decoder(_Review)
_migration_decoder = msgspec.json.Decoder(_Migration)


@dataclass(frozen=True, slots=True)
class Migrations:
    """Answers reviews of VirtualMachineInstanceMigrations that are being made."""

    client: Client
    _places: Shares = field(default_factory=lambda: Shares(AT_ONCE, least=1))
    _of_namespaces: Parts = field(default_factory=lambda: Parts(AT_ONCE_OF_A_NAMESPACE, least=1))

    async def answer(self, peer: str, read: Callable[[], Awaitable[bytes]], *, is_proven: bool) -> Answer:
        """Answer one review. BusyError when this peer, or namespace, has too many under way; and what reading raises.

        is_proven: who asks is an API server. Where nobody can be, anybody may be who asks, and is told that an instance
        cannot be migrated, but not why.
        """
        if not self._places.take(peer, 1):
            raise BusyError("too many reviews of migrations of this peer are under way")
        try:
            asked = _decoder.decode(await read()).request
            return await self._in_turn(peer, asked, is_proven=is_proven)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return failure(400, f"not an AdmissionReview: {error}")
        finally:
            self._places.give_back(peer, 1)

    async def _in_turn(self, peer: str, asked: _Asked, *, is_proven: bool) -> Answer:
        if not self._of_namespaces.take(peer, asked.namespace, 1):
            raise BusyError("too many reviews of migrations of this namespace are under way")
        try:
            return await self._judge(asked, is_proven=is_proven)
        finally:
            self._of_namespaces.give_back(peer, asked.namespace, 1)

    async def _judge(self, asked: _Asked, *, is_proven: bool) -> Answer:
        vmi = asked.vmi
        if vmi is None:
            return _reviewed({"uid": asked.uid, "allowed": True})
        try:
            because = await why_not(self.client, vmi)
        except (ApiError, DecodeError) as error:
            log.warning("cannot judge a migration", extra={"key": vmi, "because": error})
            why = str(error) if is_proven else "its log says why"
            return _denied(asked, 500, "InternalError", f"virt-api cannot tell whether the VMI can be migrated: {why}")
        log.info("migration judged", extra={"key": vmi, "because": because})
        if because is None:
            return _reviewed({"uid": asked.uid, "allowed": True})
        return _denied(asked, 400, "BadRequest", because if is_proven else HIDDEN)


def _denied(asked: _Asked, code: int, reason: str, message: str) -> Answer:
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return _reviewed({"uid": asked.uid, "allowed": False, "status": status})


def _reviewed(response: Json) -> Answer:
    return document({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
