# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No pair is accepted for another role: every pair on real connections to every other."""

from __future__ import annotations

import ssl
from itertools import product
from pathlib import Path

import pytest

from controlplane.tls.certificates import KeyPair, issue, make_ca
from controlplane.virt_controller.certificates.decide import PAIR_LIFE
from controlplane.virt_controller.certificates.roles import ROLES, Role, subject
from tests.controlplane.virt_api.served import DAY, now

SERVERS = [role for role in ROLES if role.usage == "server"]


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_ca("ca", now(), DAY)


def test_every_role_has_its_own_secret_name_and_uri() -> None:
    subjects = [subject(role, "virt") for role in ROLES]

    assert len({role.secret for role in ROLES}) == len(ROLES)
    assert len({subject.uri for subject in subjects}) == len(ROLES)
    assert len({subject.common_name for subject in subjects}) == len(ROLES)
    assert subject(ROLES[0], "virt") != subject(ROLES[0], "other"), "another control plane's is not ours"


@pytest.mark.parametrize("role", SERVERS, ids=lambda role: role.name)
def test_a_server_certificate_has_both_names_of_its_service(role: Role) -> None:
    (host,) = role.hosts
    assert subject(role, "virt").dns_names == (f"{host}.virt.svc", f"{host}.virt.svc.cluster.local")


@pytest.mark.parametrize("asked", SERVERS, ids=lambda role: role.name)
def test_a_client_that_requires_a_role_by_name_accepts_no_other(
    authority: KeyPair, asked: object, tmp_path: Path
) -> None:
    reached = [role for role in ROLES if connects(authority, server=role, client=None, directory=tmp_path, asked=asked)]

    assert reached == [asked]


def test_a_server_accepts_pairs_of_clients_only(authority: KeyPair, tmp_path: Path) -> None:
    accepted = {
        client.name
        for server, client in product(SERVERS, ROLES)
        if connects(authority, server=server, client=client, directory=tmp_path, asked=server)
    }

    assert accepted == {role.name for role in ROLES if role.usage == "client"}


def connects(authority: KeyPair, *, server: object, client: object, directory: Path, asked: object) -> bool:
    """Shake hands, each side with the pair of a role; return whether both sides accept."""
    ca = authority.certificate.decode()
    accepting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=ca)
    accepting.verify_mode = ssl.CERT_NONE if client is None else ssl.CERT_REQUIRED
    load(accepting, authority, server, directory)
    calling = ssl.create_default_context(cadata=ca)
    if client is not None:
        load(calling, authority, client, directory)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        calling.wrap_bio(to_client, to_server, server_hostname=subject(asked, "virt").dns_names[0]),  # type: ignore[arg-type]
        accepting.wrap_bio(to_server, to_client, server_side=True),
    )
    for _unused in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return True


def load(context: ssl.SSLContext, authority: KeyPair, role: object, directory: Path) -> None:
    pair = issue(authority, subject(role, "virt"), now(), PAIR_LIFE)  # type: ignore[arg-type]
    path = directory / "pair.pem"
    path.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(path)
