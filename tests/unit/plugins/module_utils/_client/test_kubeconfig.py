# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfigs: one file, several, inline; and everything that can be wrong with them."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import kubeconfig
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument


def a_config(server: str = "https://s", **user: Any) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": user}],
    }


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_dictionary_and_its_text_mean_the_same() -> None:
    data = base64.b64encode(b"PEM").decode()
    config = a_config(**{"client-certificate-data": data, "client-key-data": data, "as": "me"})
    result = kubeconfig.read(config)
    assert (result["cert_data"], result["key_data"], result["verify"]) == ("PEM", "PEM", False)
    assert result["headers"] == {"Impersonate-User": "me"}
    assert kubeconfig.read(json.dumps(config)) == result


def test_yaml_given_as_text_is_never_taken_for_paths() -> None:
    config = yaml.safe_dump(a_config(token="canary::token"))
    assert kubeconfig.read(config)["token"] == "canary::token"
    for text in (f"token: canary::x\n{config}[", "users: canary::token", f"current-context: x\n{config}"):
        with pytest.raises(BadArgument) as caught:
            kubeconfig.read(text, "no-such-context")
        assert "canary" not in caught.value.message


def test_the_first_file_that_names_an_entry_wins(tmp_path: Path) -> None:
    one = write(tmp_path / "1", json.dumps(a_config("https://one", token="1")))
    two = write(tmp_path / "2", json.dumps(a_config("https://two", token="2")))
    absent = str(tmp_path / "absent")
    config = kubeconfig.read(os.pathsep.join((absent, one, two)))
    assert (config["server"], config["token"]) == ("https://one", "1")
    other = {
        "current-context": "d",
        "contexts": [{"name": "d", "context": {"cluster": "l"}}],
        "clusters": [{"name": "l", "cluster": {"server": "https://other"}}],
    }
    three = write(tmp_path / "3", json.dumps(other))
    assert kubeconfig.read(os.pathsep.join((one, three)))["server"] == "https://one"
    assert kubeconfig.read(os.pathsep.join((three, one)))["server"] == "https://other"


def test_token_file_is_read(tmp_path: Path) -> None:
    write(tmp_path / "token", "abc\n")
    path = write(tmp_path / "config", json.dumps(a_config(tokenFile="token")))
    assert kubeconfig.read(path)["token"] == "abc"


def test_a_token_file_wins_over_a_token_unless_it_is_unreadable(tmp_path: Path) -> None:
    """As in kubectl: only the file is renewed."""
    token = write(tmp_path / "token", "newer\n")
    path = write(tmp_path / "config", json.dumps(a_config(tokenFile="token", token="older")))
    assert kubeconfig.read(path)["token"] == "newer"
    write(tmp_path / "token", "\n")
    assert kubeconfig.read(path)["token"] == "older"
    os.unlink(token)
    assert kubeconfig.read(path)["token"] == "older"


def test_a_world_readable_file_warns(tmp_path: Path) -> None:
    config = kubeconfig.read(write(tmp_path / "config", json.dumps(a_config(token="x")), 0o644))
    assert "chmod 600" in config["warnings"][0]
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", "line", id="not YAML"),
        pytest.param("- a", "a mapping is expected", id="a list"),
        pytest.param("!!python/object:os.system {}", "is not valid", id="a Python tag"),
        pytest.param("x" * (1 << 20) + "x", "more than", id="too large"),
        pytest.param("contexts: []", "no current-context", id="no context"),
        pytest.param("current-context: x\ncontexts: [{name: y}]", "has no context 'x'; it has: y", id="unknown one"),
        pytest.param(
            json.dumps(a_config(**{"client-key-data": "not base64!"})), "client-key-data is not base64", id="not base64"
        ),
        pytest.param(json.dumps(a_config(tokenFile="/no/such")), "cannot read tokenFile", id="no token file"),
    ],
)
def test_a_problem_is_named_without_quoting_the_value(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadArgument) as caught:
        kubeconfig.read(write(tmp_path / "config", text))
    assert words in caught.value.message
    assert len(caught.value.message) < 300
