# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that impersonate an API server, over real TLS, on every path for reviews."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controlplane.tls.certificates import KeyPair, make_ca
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.routes import EVICTION
from tests.controlplane.virt_api.served import CLIENTS, DAY, a_client_pair, now, serving

HOUR = 3600
REVIEW_PATHS = ("/virtualmachines-validate", "/virtualmachines-mutate", "/virtualmachineinstances-mutate", EVICTION)
NAME = "apiserver"

Issue = Callable[[KeyPair], KeyPair | None]


def by_its_own(reviewers: KeyPair) -> KeyPair:
    """Issue a certificate, with its chain, signed by the API server's own certificate, which is no CA."""
    leaf = a_client_pair(reviewers, NAME, usage=CLIENTS)
    issued = a_client_pair(leaf, NAME, usage=CLIENTS)
    return KeyPair(issued.certificate + leaf.certificate, issued.key)


def by_a_namesake(reviewers: KeyPair) -> KeyPair:
    """Issue a certificate of another CA with the same name."""
    del reviewers
    return a_client_pair(make_ca("reviewers", now(), DAY), NAME, usage=CLIENTS)


IMPOSTORS: dict[str, Issue] = {
    "no certificate": lambda reviewers: None,
    "another CA of the same name": by_a_namesake,
    "signed by a certificate that is no CA": by_its_own,
    "another name": lambda reviewers: a_client_pair(reviewers, "somebody", usage=CLIENTS),
    "ended": lambda reviewers: a_client_pair(reviewers, NAME, usage=CLIENTS, begins=-2 * HOUR),
}
CLAIMS = {
    "X-Remote-User": "system:apiserver",
    "X-Remote-Group": "system:masters",
    "X-Forwarded-Client-Cert": f'Subject="CN={NAME}"',
    "X-SSL-Client-S-DN": f"CN={NAME}",
    "X-Client-Verify": "SUCCESS",
}


def a_review() -> bytes:
    request = {
        "uid": "request-1",
        "kind": {"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachine"},
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": {},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def codes(directory: Path, issue: Issue, *, named: frozenset[str] | None) -> set[Any]:
    """Send a review to every path, with and without headers that claim an identity. Return the codes.

    named: the names of the webhook clients. None: no client is configured.
    """
    reviewers, answers = make_ca("reviewers", now(), DAY), set[Any]()
    clients = None if named is None else WebhookClients(reviewers.certificate, named)
    async with serving(directory, webhook_clients=clients) as served:
        pair = issue(reviewers)
        for path in REVIEW_PATHS:
            for claims in ({}, CLAIMS):
                try:
                    code, _unused = await served.call("POST", path, pair=pair, headers=claims, body=a_review())
                    answers.add(code)
                except (aiohttp.ClientError, ssl.SSLError):
                    answers.add("handshake")
    return answers


@pytest.mark.parametrize("issue", IMPOSTORS.values(), ids=IMPOSTORS.keys())
async def test_other_clients_cannot_send_reviews(tmp_path: Path, issue: Issue) -> None:
    assert await codes(tmp_path, issue, named=frozenset({NAME})) <= {401, "handshake"}


async def test_the_api_server_can_send_reviews_to_every_path(tmp_path: Path) -> None:
    """Shows that the other clients are refused because of their certificates."""
    answers = await codes(tmp_path, lambda ca: a_client_pair(ca, NAME, usage=CLIENTS), named=frozenset({NAME}))
    assert answers == {200}


async def test_without_webhook_clients_every_peer_may_send_reviews(tmp_path: Path) -> None:
    assert await codes(tmp_path, lambda ca: None, named=None) == {200}


async def test_an_empty_list_of_names_allows_no_client(tmp_path: Path) -> None:
    """The settings refuse an empty list; here it must not allow every client."""
    assert await codes(tmp_path, lambda ca: a_client_pair(ca, " ", usage=CLIENTS), named=frozenset()) == {401}
