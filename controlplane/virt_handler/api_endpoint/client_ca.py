# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CA of virt-api's client certificates, read from the APIService of virt-api.

virt-controller keeps the CA bundle there, also during a rotation. So virt-handler needs no access to Secrets.
"""

from __future__ import annotations

import base64
import binascii
import logging

import msgspec

from controlplane.virt_handler.api_endpoint.server import EndpointTls

log = logging.getLogger(__name__)

API_SERVICE_SELECTOR = "metadata.name=v1.subresources.kubevirt.io"
"""Selects the APIService by which users reach virt-api."""


class _Spec(msgspec.Struct):
    bundle: str = msgspec.field(default="", name="caBundle")


class _ApiService(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decoder = msgspec.json.Decoder(_ApiService)


def use_client_ca(tls: EndpointTls, raw: bytes | None) -> None:
    """Use the CA bundle of an APIService for client certificates. An empty or invalid bundle changes nothing."""
    if raw is None:
        return
    try:
        bundle = base64.b64decode(_decoder.decode(raw).spec.bundle, validate=True)
        if bundle:
            tls.use_authority(bundle)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        log.error("the client CA is invalid; the former one stays in use", extra={"because": error})
