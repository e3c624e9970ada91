# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options: documentation, argument spec and the names of kubernetes.core agree."""

from __future__ import annotations

from typing import Any

import yaml
from ansible_collections.virtops.kubevirt.plugins.doc_fragments.auth import ModuleDocFragment
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.argspec import auth_argument_spec

PEER_OPTIONS = {
    "kubeconfig", "context", "host", "api_key", "username", "password", "validate_certs", "ca_cert", "client_cert",
    "client_key", "proxy", "no_proxy", "proxy_headers", "persist_config", "impersonate_user", "impersonate_groups",
}  # fmt: skip
PEER_VARIABLES = {
    "K8S_AUTH_KUBECONFIG", "K8S_AUTH_CONTEXT", "K8S_AUTH_HOST", "K8S_AUTH_API_KEY", "K8S_AUTH_USERNAME",
    "K8S_AUTH_PASSWORD", "K8S_AUTH_VERIFY_SSL", "K8S_AUTH_SSL_CA_CERT", "K8S_AUTH_CERT_FILE", "K8S_AUTH_KEY_FILE",
    "K8S_AUTH_PROXY", "K8S_AUTH_NO_PROXY", "K8S_AUTH_PERSIST_CONFIG", "K8S_AUTH_IMPERSONATE_USER",
    "K8S_AUTH_IMPERSONATE_GROUPS", "K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH", "K8S_AUTH_PROXY_HEADERS_BASIC_AUTH",
    "K8S_AUTH_PROXY_HEADERS_USER_AGENT",
}  # fmt: skip


def documented() -> dict[str, Any]:
    return yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]


def variables(spec: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    for option in spec.values():
        names.update(option.get("fallback", (None, []))[1])
        names |= variables(option.get("options", {}))
    return names


def test_options_and_variables_are_those_of_kubernetes_core() -> None:
    assert set(auth_argument_spec()) == PEER_OPTIONS
    assert variables(auth_argument_spec()) >= PEER_VARIABLES


def test_documentation_and_specification_are_equal() -> None:
    docs, spec = documented(), auth_argument_spec()
    assert set(docs) == set(spec)
    for name, option in spec.items():
        assert docs[name]["type"] == option["type"], name
        assert docs[name].get("aliases", []) == option.get("aliases", []), name
        assert set(docs[name].get("suboptions", {})) == set(option.get("options", {})), name


def test_every_variable_is_documented() -> None:
    assert all(f"E({name})" in ModuleDocFragment.DOCUMENTATION for name in variables(auth_argument_spec()))


def test_secrets_are_not_logged() -> None:
    spec = auth_argument_spec()
    secrets = [spec["api_key"], spec["password"], *list(spec["proxy_headers"]["options"].values())[:2]]
    assert all(option["no_log"] for option in secrets)
