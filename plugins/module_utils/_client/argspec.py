# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of every module: how to reach the cluster. Names, aliases and variables are those of kubernetes.core.

The documentation of the same options is plugins/doc_fragments/auth.py; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import env_fallback


def _env(*names: str) -> tuple[Any, list[str]]:
    return (env_fallback, [f"K8S_AUTH_{name}" for name in names])


def auth_argument_spec() -> dict[str, Any]:
    """Return a fresh argument spec of the connection options."""
    headers = {
        "proxy_basic_auth": {"type": "str", "no_log": True, "fallback": _env("PROXY_HEADERS_PROXY_BASIC_AUTH")},
        "basic_auth": {"type": "str", "no_log": True, "fallback": _env("PROXY_HEADERS_BASIC_AUTH")},
        "user_agent": {"type": "str", "fallback": _env("PROXY_HEADERS_USER_AGENT")},
    }
    return {
        "kubeconfig": {"type": "raw", "fallback": _env("KUBECONFIG")},
        "context": {"type": "str", "fallback": _env("CONTEXT")},
        "host": {"type": "str", "fallback": _env("HOST")},
        "api_key": {"type": "str", "no_log": True, "fallback": _env("API_KEY")},
        "username": {"type": "str", "fallback": _env("USERNAME")},
        "password": {"type": "str", "no_log": True, "fallback": _env("PASSWORD")},
        "validate_certs": {
            "type": "bool",
            "aliases": ["verify_ssl"],
            "fallback": _env("VALIDATE_CERTS", "VERIFY_SSL"),
        },
        "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"], "fallback": _env("CA_CERT", "SSL_CA_CERT")},
        "client_cert": {"type": "path", "aliases": ["cert_file"], "fallback": _env("CLIENT_CERT", "CERT_FILE")},
        "client_key": {
            "type": "path",
            "aliases": ["key_file"],
            "no_log": False,
            "fallback": _env("CLIENT_KEY", "KEY_FILE"),
        },
        "proxy": {"type": "str", "fallback": _env("PROXY")},
        "no_proxy": {"type": "str", "fallback": _env("NO_PROXY")},
        "proxy_headers": {"type": "dict", "options": headers, "apply_defaults": True},
        "persist_config": {"type": "bool", "fallback": _env("PERSIST_CONFIG")},
        "impersonate_user": {"type": "str", "fallback": _env("IMPERSONATE_USER")},
        "impersonate_groups": {"type": "list", "elements": "str", "fallback": _env("IMPERSONATE_GROUPS")},
    }
