# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of evictions: reads Pod and instance from the quorum, has eviction judge, marks, answers.

Whoever may evict a Pod asks the API server; it asks here only about Pods that are named like a launcher.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, Conflict, NotFound
from controlplane.http_server.quotas import Parts, Shares
from controlplane.kube.client import Client
from controlplane.virt_api.admission.eviction_decision import Allowed, Denied, Judgement, Marked, judge_eviction
from controlplane.virt_api.concurrency import BusyError
from controlplane.virt_api.http.response import Answer, Json, document, failure

log = logging.getLogger(__name__)

MAX_EVICTION_BYTES = 64 * 1024
DESCHEDULER = "descheduler"
REQUESTED_BY = "requested-by"
"""Annotation of an Eviction: by whom."""
EVICTION_SOURCE = "kubevirt.io/eviction-source"
"""Annotation of an instance: DESCHEDULER, when it is to leave its node for that one's sake."""
AT_ONCE = 128
"""Reviews under way, shared by peer: each reads twice from the API server."""
AT_ONCE_OF_A_NAMESPACE = 32
"""Of a peer's: all users come by the one API server."""


class _DeleteOptions(msgspec.Struct, rename="camel"):
    dry_run: tuple[str, ...] | None = None


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Eviction(msgspec.Struct, rename="camel"):
    metadata: _Metadata | None = None
    delete_options: _DeleteOptions | None = None


class _Asked(msgspec.Struct, rename="camel"):
    uid: str
    name: str = ""
    namespace: str = ""
    dry_run: bool | None = None
    object: _Eviction | None = None

    @property
    def is_dry(self) -> bool:
        """Nothing may be written: by the request itself, or by what it would have the delete do (kubectl drain)."""
        options = None if self.object is None else self.object.delete_options
        return bool(self.dry_run) or bool(options is not None and options.dry_run)

    @property
    def source(self) -> str | None:
        """Who asks, where that makes a difference to whoever moves the instance."""
        metadata = None if self.object is None else self.object.metadata
        annotations = (metadata.annotations if metadata is not None else None) or {}
        return DESCHEDULER if annotations.get(REQUESTED_BY) == f"sigs.k8s.io/{DESCHEDULER}" else None


class _Review(msgspec.Struct):
    request: _Asked


_decoder = msgspec.json.Decoder(_Review)


@dataclass(frozen=True, slots=True)
class Evictions:
    """Answers reviews of pods/eviction."""

    client: Client
    usual: Callable[[], str | None]
    """The cluster's strategy, of instances that name none."""
    _places: Shares = field(default_factory=lambda: Shares(AT_ONCE, least=1))
    _of_namespaces: Parts = field(default_factory=lambda: Parts(AT_ONCE_OF_A_NAMESPACE, least=1))

    async def answer(self, peer: str, body: bytes, *, is_proven: bool) -> Answer:
        """Answer one review. BusyError when this peer, or namespace, has too many under way.

        is_proven: who asks is an API server. Where nobody can be, anybody may be who asks: a mark is set all the same,
        or no drain would come to an end, but whose machine it is and how it is made is not told.
        """
        try:
            asked = _decoder.decode(body).request
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return failure(400, f"not an AdmissionReview: {error}")
        if not self._places.take(peer, 1):
            raise BusyError("too many reviews of evictions of this peer are under way")
        try:
            judged = await self._in_turn(peer, asked)
        except (ApiError, DecodeError) as error:
            log.warning("cannot judge an eviction", extra={"key": f"{asked.namespace}/{asked.name}", "because": error})
            why = str(error) if is_proven else "its log says why"
            return _denied(asked, 500, "InternalError", f"virt-api cannot tell whether its machine may go: {why}")
        finally:
            self._places.give_back(peer, 1)
        return _render(asked, judged, is_proven=is_proven)

    async def _in_turn(self, peer: str, asked: _Asked) -> Judgement:
        if not self._of_namespaces.take(peer, asked.namespace, 1):
            raise BusyError("too many reviews of evictions of this namespace are under way")
        try:
            return await self._judge(asked)
        finally:
            self._of_namespaces.give_back(peer, asked.namespace, 1)

    async def _judge(self, asked: _Asked) -> Judgement:
        key = Key(asked.namespace, asked.name)
        try:
            pod = decode(await self.client.get(POD, key), Pod)
        except NotFound:
            return Allowed()
        vmi = await self._read(pod)
        judged = judge_eviction(pod, vmi, self.usual())
        if isinstance(judged, Marked) and vmi is not None and not asked.is_dry:
            await self._mark(vmi, judged, asked.source)
        log.info("eviction judged", extra={"key": key, "as": type(judged).__name__, "dry_run": asked.is_dry})
        return judged

    async def _read(self, pod: Pod) -> VirtualMachineInstance | None:
        key = pod.vmi_key
        if key is None:
            return None
        try:
            return decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
        except NotFound:
            return None

    async def _mark(self, vmi: VirtualMachineInstance, judged: Marked, source: str | None) -> None:
        """Note the source first: whoever sees the mark acts upon it."""
        key, uid = Key(vmi.metadata.namespace, vmi.metadata.name), vmi.metadata.uid
        noted: Json = {"metadata": {"annotations": {EVICTION_SOURCE: source}}}
        patch: Json = {"status": {"evacuationNodeName": judged.node}}
        try:
            if vmi.metadata.annotations.get(EVICTION_SOURCE) != source:
                await self.client.patch(VIRTUAL_MACHINE_INSTANCE, key, noted, uid=uid)
            await self.client.patch(VIRTUAL_MACHINE_INSTANCE, key, patch, subresource="status", uid=uid)
        except (NotFound, Conflict):
            log.info("gone before it was marked", extra={"key": key})  # denied this once; asked again it may go


def _render(asked: _Asked, judged: Judgement, *, is_proven: bool) -> Answer:
    match judged:
        case Allowed():
            return _reviewed({"uid": asked.uid, "allowed": True})
        case Denied(why=why, to_anybody=to_anybody) | Marked(why=why, to_anybody=to_anybody):
            return _denied(asked, 429, "TooManyRequests", why if is_proven else to_anybody)


def _denied(asked: _Asked, code: int, reason: str, message: str) -> Answer:
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return _reviewed({"uid": asked.uid, "allowed": False, "status": status})


def _reviewed(response: Json) -> Answer:
    return document({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
