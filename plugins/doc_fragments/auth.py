# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options; plugins/module_utils/_client/argspec.py has the options themselves."""

from __future__ import annotations


class ModuleDocFragment:
    """The options that every module of this collection shares."""

    DOCUMENTATION = r"""
options:
  host:
    description:
      - Address of the API server, such as V(https://cluster.example.org:6443).
      - Can also be given by the environment variable E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token of the user.
      - Can also be given by the environment variable E(K8S_AUTH_API_KEY).
    type: str
  kubeconfig:
    description:
      - Path of a kubeconfig file, or several paths joined by V(:), or the configuration itself as a dictionary.
      - Without it, O(host) and credentials, the module uses the service account of its own Pod, else the files in
        E(KUBECONFIG), else V(~/.kube/config).
      - Can also be given by the environment variable E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description:
      - Name of a context of the kubeconfig; its current context by default.
      - Can also be given by the environment variable E(K8S_AUTH_CONTEXT).
    type: str
  username:
    description:
      - User name for HTTP basic authentication, for a proxy in front of the API server.
      - Can also be given by the environment variable E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - Password for HTTP basic authentication.
      - Can also be given by the environment variable E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description:
      - Path of the user's certificate.
      - Can also be given by the environment variables E(K8S_AUTH_CLIENT_CERT) and E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the key of O(client_cert).
      - Can also be given by the environment variables E(K8S_AUTH_CLIENT_KEY) and E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - Path of the CA certificates that verify the API server's certificate.
      - Can also be given by the environment variables E(K8S_AUTH_CA_CERT) and E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description:
      - Whether to verify the API server's certificate. The default is V(true), unless the kubeconfig disables it.
      - Every task that does not verify it shows a warning.
      - Can also be given by the environment variables E(K8S_AUTH_VALIDATE_CERTS) and E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - Address of an HTTP proxy, such as V(http://proxy.example.org:3128), with port 80 by default. It may contain
        user and password. TLS and SOCKS proxies are not supported. The usual proxy environment variables are ignored.
      - Can also be given by the environment variable E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Comma-separated hosts, domains, addresses and networks to reach without O(proxy).
      - Can also be given by the environment variable E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description:
      - Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description:
          - User and password for the proxy, joined by a colon.
          - Can also be given by the environment variable E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description:
          - User and password for basic authentication, joined by a colon.
          - Can also be given by the environment variable E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description:
          - The user agent for the proxy, such as V(foo/1.0).
          - Can also be given by the environment variable E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  persist_config:
    description:
      - Whether to write a token that a credential plugin refreshed back into the kubeconfig file.
      - Can also be given by the environment variable E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description:
      - User to act as.
      - Can also be given by the environment variable E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups to act as a member of.
      - Can also be given by the environment variable E(K8S_AUTH_IMPERSONATE_GROUPS), separated by commas.
    type: list
    elements: str
requirements:
  - python >= 3.10
  - PyYAML, when a kubeconfig is read
  - kubernetes >= 28.1.0, only when the kubeconfig gets its credentials from a plugin
"""
