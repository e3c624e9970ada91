# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.virt_api.settings import SettingsError, parse
from tests.controlplane.virt_api.served import an_authority

LEAST = {"POD_NAMESPACE": "virt"}
CA = an_authority("reviewers").certificate.decode()


def test_only_the_namespace_is_required() -> None:
    settings = parse(LEAST)

    assert (settings.namespace, settings.address, settings.port) == ("virt", "", 8443)
    assert settings.webhook_clients is None
    with pytest.raises(SettingsError, match="POD_NAMESPACE"):
        parse({})


def test_webhook_clients_have_a_ca_and_names() -> None:
    settings = parse({**LEAST, "WEBHOOK_CLIENT_CA": CA, "WEBHOOK_CLIENT_NAMES": '["a, b", "c"]'})

    assert settings.webhook_clients is not None
    assert settings.webhook_clients.names == {"a, b", "c"}
    assert settings.webhook_clients.authority.decode() == CA


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"WEBHOOK_CLIENT_CA": CA}, "NAMES"),
        ({"WEBHOOK_CLIENT_CA": CA, "WEBHOOK_CLIENT_NAMES": "[]"}, "NAMES"),
        ({"WEBHOOK_CLIENT_CA": CA, "WEBHOOK_CLIENT_NAMES": '[""]'}, "NAMES"),
        ({"WEBHOOK_CLIENT_CA": CA, "WEBHOOK_CLIENT_NAMES": '"apiserver"'}, "NAMES"),
        ({"WEBHOOK_CLIENT_CA": CA, "WEBHOOK_CLIENT_NAMES": "apiserver"}, "NAMES"),
        ({"WEBHOOK_CLIENT_NAMES": '["apiserver"]'}, "CA"),
        ({"WEBHOOK_CLIENT_CA": "/etc/ca.pem", "WEBHOOK_CLIENT_NAMES": '["apiserver"]'}, "CA"),
    ],
    ids=["no names", "empty list", "empty name", "no list", "no JSON", "no CA", "a path"],
)
def test_a_ca_without_names_or_names_without_a_ca_are_an_error(given: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=f"WEBHOOK_CLIENT_{named}"):
        parse({**LEAST, **given})


@pytest.mark.parametrize("port", ["-1", "65536", "https", "", "8443.0"])
def test_an_invalid_port_is_named(port: str) -> None:
    with pytest.raises(SettingsError, match=r"LISTEN_PORT .* must be a port, 0 to 65535"):
        parse({**LEAST, "LISTEN_PORT": port})
