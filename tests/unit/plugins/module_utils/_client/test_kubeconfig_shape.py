# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A field of a kubeconfig with a type that kubectl refuses: named, and never guessed."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import endpoint, kubeconfig
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument

WRONG: dict[str, Any] = {
    "users[0].user.token": 8675309,
    "users[0].user.password": 8675309,
    "users[0].user.as": 5,
    "users[0].user.as-groups": "system:masters",
    "users[0].user.as-groups[0]": 5,
    "users[0].user.client-key-data": 5,
    "users[0].user.tokenFile": 5,
    "users[0].user.exec": "login",
    "users[0].user.exec.env": 5,
    "users[0].user.exec.env[0]": "A=8675309",
    "users[0].user": ["8675309"],
    "users[0]": "8675309",
    "users": "8675309",
    "clusters": 5,
    "clusters[0]": "k",
    "clusters[0].cluster": "https://s",
    "clusters[0].cluster.server": 5,
    "clusters[0].cluster.proxy-url": 5,
    "clusters[0].cluster.certificate-authority": 5,
    "clusters[0].cluster.certificate-authority-data": 5,
    "clusters[0].cluster.insecure-skip-tls-verify": "false",
    "contexts": {"c": {}},
    "contexts[0].context": "k",
    "current-context": 5,
}


def a_config() -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://s"}}],
        "users": [{"name": "u", "user": {"exec": {"command": "login", "env": [{"name": "A"}]}, "as-groups": ["g"]}}],
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    config: Any = a_config()
    steps = [int(item) if item.isdigit() else item for item in path.replace("]", "").replace("[", ".").split(".")]
    where = config
    for step in steps[:-1]:
        where = where[step]
    where[steps[-1]] = value
    return dict(config)


@pytest.mark.parametrize("path", WRONG)
def test_a_field_of_another_type_is_named_without_its_value(tmp_path: Path, path: str) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(changed(path, WRONG[path])))
    file.chmod(0o600)

    with pytest.raises(BadArgument) as caught:
        kubeconfig.read(str(file))

    assert f"{file}: {path} must be " in caught.value.message
    assert "8675309" not in caught.value.message


def test_a_value_that_yaml_reads_as_a_date_must_be_quoted() -> None:
    with pytest.raises(BadArgument, match=r"users\[0\].user.token must be a text; put a number or a date in quotes"):
        kubeconfig.read(changed("users[0].user", {"token": datetime.date(2026, 1, 1)}))


@pytest.mark.parametrize(("word", "verify"), [("false", True), ("No", True), ("True", False), ("yes", False)])
def test_a_boolean_that_a_template_made_a_text_is_accepted(word: str, verify: bool) -> None:
    config = changed("clusters[0].cluster", {"server": "https://s", "insecure-skip-tls-verify": word})
    config["users"] = [{"name": "u", "user": {"token": "t"}}]

    assert kubeconfig.read(config)["verify"] is verify
    assert kubeconfig.read(json.dumps(config))["verify"] is verify


def test_another_text_is_no_boolean() -> None:
    config = changed("clusters[0].cluster", {"insecure-skip-tls-verify": "maybe"})
    for source in (config, json.dumps(config)):
        with pytest.raises(BadArgument, match="insecure-skip-tls-verify must be true or false"):
            kubeconfig.read(source)


@pytest.mark.parametrize("host", ["https://h:abc", "https://h:99999", "https://[::1", "https://h:0", "ftp://h"])
def test_a_malformed_address_is_refused(host: str) -> None:
    with pytest.raises(BadArgument, match="host: not an address like"):
        endpoint.resolve({"host": host, "api_key": "t"}, {})


@pytest.mark.parametrize("option", ["api_key", "impersonate_user"])
def test_a_value_that_no_header_can_carry_is_refused_without_showing_it(option: str) -> None:
    with pytest.raises(BadArgument, match=f"{option}: character 8 cannot be sent") as caught:
        endpoint.resolve({"host": "https://h", "api_key": "t", option: "schl\u00fcss\u20acl"}, {})
    assert "schl" not in caught.value.message


@pytest.mark.parametrize("name", ["no\0path", "latin"])
def test_an_unreadable_token_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "latin").write_bytes(b"schl\xfcssel")
    config = changed("users[0].user", {"tokenFile": str(tmp_path / name)})

    with pytest.raises(BadArgument, match=r"kubeconfig: cannot read tokenFile .*: it is no text"):
        kubeconfig.read(config)
