# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server that options and environment select, and its credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument

KUBECONFIG = """
current-context: one
contexts: [{name: one, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://file.example.org", certificate-authority: ca.crt}}]
users: [{name: u, user: {token: from-file}}]
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / ".kube"
    folder.mkdir()
    (folder / "config").write_text(KUBECONFIG)
    (folder / "config").chmod(0o600)
    return {"HOME": str(tmp_path)}


def test_host_with_credentials_needs_no_file() -> None:
    resolved = endpoint.resolve({"host": "https://h:6443/", "api_key": "t"}, {"HOME": "/nowhere"})
    assert (resolved.server, resolved.authorization()) == ("https://h:6443", "Bearer t")


def test_default_file_is_read(home: dict[str, str]) -> None:
    resolved = endpoint.resolve({}, home)
    assert (resolved.server, resolved.token) == ("https://file.example.org", "from-file")
    assert resolved.ca_file == str(Path(home["HOME"]) / ".kube" / "ca.crt"), "relative to its own file"


def test_options_override_the_file(home: dict[str, str]) -> None:
    resolved = endpoint.resolve({"host": "https://other", "username": "u", "password": "p", "ca_cert": "/ca"}, home)
    assert (resolved.server, resolved.ca_file) == ("https://other", "/ca")
    assert (resolved.authorization() or "").startswith("Basic ")


def test_in_cluster_comes_before_the_default_file(
    home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("pod-token\n")
    monkeypatch.setattr(endpoint, "SERVICE_ACCOUNT", str(tmp_path))
    inside = {**home, "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    resolved = endpoint.resolve({}, inside)
    assert (resolved.server, resolved.token) == ("https://[fd00::1]:443", "pod-token")
    assert endpoint.resolve({"context": "one"}, inside).token == "from-file", "unless a context is named"


def test_impersonation_and_proxy_headers() -> None:
    resolved = endpoint.resolve(
        {
            "host": "https://h", "api_key": "t", "impersonate_user": "u", "impersonate_groups": ["a", "b"],
            "proxy_headers": {"proxy_basic_auth": "p:w", "basic_auth": None, "user_agent": None},
        },
        {},
    )  # fmt: skip
    assert (resolved.headers, resolved.groups) == ({"Impersonate-User": "u"}, ("a", "b"))
    assert resolved.proxy_headers == {"Proxy-Authorization": "Basic cDp3"}


def test_the_proxy_user_may_be_in_the_url_and_the_option_wins() -> None:
    params = {"host": "https://h", "api_key": "t", "proxy": "http://p:w@proxy:3128"}
    assert endpoint.resolve(params, {}).proxy_headers == {"Proxy-Authorization": "Basic cDp3"}
    other = endpoint.resolve({**params, "proxy_headers": {"proxy_basic_auth": "o:o"}}, {})
    assert other.proxy_headers == {"Proxy-Authorization": "Basic bzpv"}


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_the_general_proxy_variables_are_ignored(name: str) -> None:
    """As for option proxy: a proxy for downloads of packages seldom leads to a cluster."""
    resolved = endpoint.resolve({"host": "https://h", "api_key": "t"}, {name: "http://proxy:3128", "NO_PROXY": "x"})

    assert (resolved.proxy, resolved.proxy_headers) == (endpoint.Endpoint().proxy, {})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        pytest.param({"host": "http://10.0.0.1", "api_key": "t"}, "not sent over plain http", id="token over http"),
        pytest.param({"host": "https://h", "api_key": "a\nb"}, "api_key: a header value may not", id="line break"),
        pytest.param({"host": "ftp://h", "api_key": "t"}, "host: not an address", id="another scheme"),
        pytest.param({"host": "https://u:p@h", "api_key": "t"}, "host: not an address", id="credentials in the host"),
        pytest.param({"host": "https://h", "api_key": "t", "proxy": "socks5://p"}, "proxy: not an address", id="SOCKS"),
        pytest.param({}, "kubeconfig: no such file", id="nothing at all"),
        pytest.param({"kubeconfig": "/"}, "cannot read kubeconfig /: Is a directory", id="a directory"),
        pytest.param({"kubeconfig": 7}, "kubeconfig: neither a path nor a dictionary", id="a number"),
    ],
)
def test_unusable_values_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        endpoint.resolve(params, {"HOME": "/nowhere"})
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"host": "http://10.0.0.1"}, "plain http"),
        ({"host": "https://h", "api_key": "t", "validate_certs": False}, "is not checked"),
        ({"host": "https://h", "api_key": "t", "validate_certs": False, "ca_cert": "/x"}, "ca_cert is ignored"),
    ],
)
def test_unwise_values_warn(params: dict[str, Any], words: str) -> None:
    resolved = endpoint.resolve(params, {"HOME": "/nowhere"})
    assert words in " ".join(resolved.warnings)


def test_secrets_are_not_in_the_representation() -> None:
    assert "canary" not in repr(endpoint.Endpoint(token="canary", password="canary", key_data="canary"))


def test_secrets_are_collected_from_every_source() -> None:
    resolved = endpoint.Endpoint(
        server="https://s", token="t", password="p", key_data="k", proxy_headers={"Authorization": "b"}
    )
    assert resolved.secrets() == ["t", "p", "k", "b"]
    assert endpoint.Endpoint(server="https://s", username="shown").secrets() == []
