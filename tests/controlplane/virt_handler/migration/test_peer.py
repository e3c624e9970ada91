# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import ssl
from typing import Any

import pytest

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import Invalid
from controlplane.virt_handler.migration.peer import (
    CERTIFICATE,
    certificate_annotation,
    client_tls_context,
    read_peer_certificate,
    server_tls_context,
)
from tests.controlplane.virt_handler.migration.ends import SOURCE, TARGET, pair_of


class Api:
    """An API with one Node, which has these annotations."""

    def __init__(self, annotations: dict[str, str] | None) -> None:
        self._annotations = annotations

    async def get(self, resource: object, key: Key) -> dict[str, Any]:
        assert (resource, key) == (NODE, Key("", TARGET))
        return {"metadata": {"name": TARGET, "annotations": self._annotations}}


async def test_a_peer_certificate_is_read_from_its_node() -> None:
    api: Any = Api(certificate_annotation(pair_of(TARGET)))
    assert await read_peer_certificate(api, TARGET) == pair_of(TARGET).der


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (None, "has not published"),
        ({}, "has not published"),
        ({CERTIFICATE: ""}, "has not published"),
        ({CERTIFICATE: "A" * 5000}, "has not published"),
        ({CERTIFICATE: "no base64 at all"}, "is invalid"),
    ],
)
async def test_a_node_without_a_valid_certificate_is_an_error(annotations: dict[str, str] | None, words: str) -> None:
    api: Any = Api(annotations)
    with pytest.raises(Invalid, match=words):
        await read_peer_certificate(api, TARGET)


@pytest.mark.parametrize("said", [b"", b"no certificate", base64.b64decode("MIIB")])
def test_an_invalid_certificate_is_refused_at_either_end(said: bytes) -> None:
    with pytest.raises(Invalid, match="cannot listen"):
        server_tls_context(pair_of(TARGET), said)
    with pytest.raises(Invalid, match="cannot connect"):
        client_tls_context(pair_of(SOURCE), said)


def test_both_ends_require_tls_1_3_and_a_certificate() -> None:
    listens = server_tls_context(pair_of(TARGET), pair_of(SOURCE).der)
    calls = client_tls_context(pair_of(SOURCE), pair_of(TARGET).der)
    assert listens.minimum_version == calls.minimum_version == ssl.TLSVersion.TLSv1_3
    assert listens.verify_mode == calls.verify_mode == ssl.CERT_REQUIRED
    assert calls.check_hostname
