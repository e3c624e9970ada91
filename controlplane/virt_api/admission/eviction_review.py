# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of pods/eviction: reads Pod and VMI from the API server, decides, and marks the VMI for evacuation.

The webhook's rules select Pods that are named like a launcher.
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
from controlplane.http_server.quotas import Quota
from controlplane.kube.client import Client
from controlplane.virt_api.admission.eviction_decision import Allow, Decision, Deny, Evacuate, decide_eviction
from controlplane.virt_api.admission.responses import allowed, denied
from controlplane.virt_api.http.response import Json, Response, failure

log = logging.getLogger(__name__)

MAX_EVICTION_BYTES = 64 * 1024
DESCHEDULER = "descheduler"
REQUESTED_BY = "requested-by"
"""Annotation of an Eviction: who requests it."""
EVICTION_SOURCE = "kubevirt.io/eviction-source"
"""Annotation of a VMI: DESCHEDULER when the descheduler has requested the evacuation."""
MAX_CONCURRENT = 128
"""Reviews at once: each reads twice from the API server."""
MAX_CONCURRENT_OF_PEER = 96


class _DeleteOptions(msgspec.Struct, rename="camel"):
    dry_run: tuple[str, ...] | None = None


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Eviction(msgspec.Struct, rename="camel"):
    metadata: _Metadata | None = None
    delete_options: _DeleteOptions | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    name: str = ""
    namespace: str = ""
    dry_run: bool | None = None
    object: _Eviction | None = None

    @property
    def is_dry_run(self) -> bool:
        """A dry run of the eviction itself, or of the delete that it stands for (kubectl drain)."""
        options = None if self.object is None else self.object.delete_options
        return bool(self.dry_run) or bool(options is not None and options.dry_run)

    @property
    def source(self) -> str | None:
        """The value of EVICTION_SOURCE for this request."""
        metadata = None if self.object is None else self.object.metadata
        annotations = (metadata.annotations if metadata is not None else None) or {}
        return DESCHEDULER if annotations.get(REQUESTED_BY) == f"sigs.k8s.io/{DESCHEDULER}" else None


class _Review(msgspec.Struct):
    request: _Request


_decoder = msgspec.json.Decoder(_Review)


@dataclass(frozen=True, slots=True)
class EvictionReviews:
    """Answers reviews of pods/eviction."""

    client: Client
    default_strategy: Callable[[], str | None]
    """The cluster's eviction strategy, for VMIs without one."""
    _concurrent: Quota = field(default_factory=lambda: Quota(MAX_CONCURRENT, MAX_CONCURRENT_OF_PEER))

    async def answer(self, peer: str, body: bytes, *, is_authenticated: bool) -> Response:
        """Answer one review. BusyError when too many are under way.

        is_authenticated: the peer is an API server. Without authentication of API servers any peer may send reviews.
        The VMI is marked all the same, otherwise no drain would end, but the response does not describe it.
        """
        try:
            request = _decoder.decode(body).request
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return failure(400, f"not an AdmissionReview: {error}")
        with self._concurrent.reserve(peer, 1, "too many reviews of evictions are under way"):
            try:
                decision = await self._decide(request)
            except (ApiError, DecodeError) as error:
                key = f"{request.namespace}/{request.name}"
                log.warning("cannot decide about an eviction", extra={"key": key, "because": error})
                why = str(error) if is_authenticated else "see its log"
                return denied(request.uid, 500, "InternalError", f"virt-api cannot decide about this eviction: {why}")
        return _render(request, decision, is_authenticated=is_authenticated)

    async def _decide(self, request: _Request) -> Decision:
        key = Key(request.namespace, request.name)
        try:
            pod = decode(await self.client.get(POD, key), Pod)
        except NotFound:
            return Allow()
        vmi = await self._read_vmi(pod)
        decision = decide_eviction(pod, vmi, self.default_strategy())
        if isinstance(decision, Evacuate) and vmi is not None and not request.is_dry_run:
            await self._mark(vmi, decision, request.source)
        log.info(
            "eviction reviewed",
            extra={"key": key, "decision": type(decision).__name__, "dry_run": request.is_dry_run},
        )
        return decision

    async def _read_vmi(self, pod: Pod) -> VirtualMachineInstance | None:
        key = pod.vmi_key
        if key is None:
            return None
        try:
            return decode_vmi(await self.client.get(VIRTUAL_MACHINE_INSTANCE, key))
        except NotFound:
            return None

    async def _mark(self, vmi: VirtualMachineInstance, decision: Evacuate, source: str | None) -> None:
        """Set evacuationNodeName, and the source before it: controllers act as soon as they see the former."""
        key, uid = Key(vmi.metadata.namespace, vmi.metadata.name), vmi.metadata.uid
        annotation: Json = {"metadata": {"annotations": {EVICTION_SOURCE: source}}}
        status: Json = {"status": {"evacuationNodeName": decision.node}}
        try:
            if vmi.metadata.annotations.get(EVICTION_SOURCE) != source:
                await self.client.patch(VIRTUAL_MACHINE_INSTANCE, key, annotation, uid=uid)
            await self.client.patch(VIRTUAL_MACHINE_INSTANCE, key, status, subresource="status", uid=uid)
        except (NotFound, Conflict):
            # This request is denied; the client repeats it, and the Pod without a VMI may then be evicted.
            log.info("the VMI was gone before it was marked", extra={"key": key})


def _render(request: _Request, decision: Decision, *, is_authenticated: bool) -> Response:
    match decision:
        case Allow():
            return allowed(request.uid)
        case Deny(message=message, public_message=public) | Evacuate(message=message, public_message=public):
            return denied(request.uid, 429, "TooManyRequests", message if is_authenticated else public)
