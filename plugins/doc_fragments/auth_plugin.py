# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options as plugins take them; tests/sanity/plugin_options.py makes this file of auth.py."""

from __future__ import annotations


class ModuleDocFragment:
    """The options that plugins of this collection share."""

    DOCUMENTATION = r"""
options:
  host:
    description:
      - Address of the API server, such as V(https://cluster.example.org:6443).
    type: str
    env:
      - name: K8S_AUTH_HOST
    ini:
      - section: virtops_kubevirt
        key: host
  api_key:
    description:
      - Bearer token of the user.
    type: str
    env:
      - name: K8S_AUTH_API_KEY
  kubeconfig:
    description:
      - Path of a kubeconfig file, or several paths joined by V(:), or the configuration itself as a dictionary.
      - Without it, O(host) and credentials, the module uses the service account of its own Pod, else the files in
        E(KUBECONFIG), else V(~/.kube/config).
    type: raw
    env:
      - name: K8S_AUTH_KUBECONFIG
    ini:
      - section: virtops_kubevirt
        key: kubeconfig
  context:
    description:
      - Name of a context of the kubeconfig; its current context by default.
    type: str
    env:
      - name: K8S_AUTH_CONTEXT
    ini:
      - section: virtops_kubevirt
        key: context
  username:
    description:
      - User name for HTTP basic authentication, for a proxy in front of the API server.
    type: str
    env:
      - name: K8S_AUTH_USERNAME
    ini:
      - section: virtops_kubevirt
        key: username
  password:
    description:
      - Password for HTTP basic authentication.
    type: str
    env:
      - name: K8S_AUTH_PASSWORD
  client_cert:
    description:
      - Path of the user's certificate.
    type: path
    aliases: [cert_file]
    env:
      - name: K8S_AUTH_CERT_FILE
      - name: K8S_AUTH_CLIENT_CERT
    ini:
      - section: virtops_kubevirt
        key: client_cert
  client_key:
    description:
      - Path of the key of O(client_cert).
    type: path
    aliases: [key_file]
    env:
      - name: K8S_AUTH_KEY_FILE
      - name: K8S_AUTH_CLIENT_KEY
    ini:
      - section: virtops_kubevirt
        key: client_key
  ca_cert:
    description:
      - Path of the CA certificates that verify the API server's certificate.
    type: path
    aliases: [ssl_ca_cert]
    env:
      - name: K8S_AUTH_SSL_CA_CERT
      - name: K8S_AUTH_CA_CERT
    ini:
      - section: virtops_kubevirt
        key: ca_cert
  validate_certs:
    description:
      - Whether to verify the API server's certificate. The default is V(true), unless the kubeconfig disables it.
      - Every task that does not verify it shows a warning.
    type: bool
    aliases: [verify_ssl]
    env:
      - name: K8S_AUTH_VERIFY_SSL
      - name: K8S_AUTH_VALIDATE_CERTS
    ini:
      - section: virtops_kubevirt
        key: validate_certs
  proxy:
    description:
      - Address of an HTTP proxy, such as V(http://proxy.example.org:3128), with port 80 by default. It may contain
        user and password. TLS and SOCKS proxies are not supported. The usual proxy environment variables are ignored.
    type: str
    env:
      - name: K8S_AUTH_PROXY
    ini:
      - section: virtops_kubevirt
        key: proxy
  no_proxy:
    description:
      - Comma-separated hosts, domains, addresses and networks to reach without O(proxy).
    type: str
    env:
      - name: K8S_AUTH_NO_PROXY
    ini:
      - section: virtops_kubevirt
        key: no_proxy
  proxy_headers:
    description:
      - Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description:
          - User and password for the proxy, joined by a colon.
        type: str
      basic_auth:
        description:
          - User and password for basic authentication, joined by a colon.
        type: str
      user_agent:
        description:
          - The user agent for the proxy, such as V(foo/1.0).
        type: str
  persist_config:
    description:
      - Whether to write a token that a credential plugin refreshed back into the kubeconfig file.
    type: bool
    env:
      - name: K8S_AUTH_PERSIST_CONFIG
    ini:
      - section: virtops_kubevirt
        key: persist_config
  impersonate_user:
    description:
      - User to act as.
    type: str
    env:
      - name: K8S_AUTH_IMPERSONATE_USER
    ini:
      - section: virtops_kubevirt
        key: impersonate_user
  impersonate_groups:
    description:
      - Groups to act as a member of.
    type: list
    elements: str
    env:
      - name: K8S_AUTH_IMPERSONATE_GROUPS
    ini:
      - section: virtops_kubevirt
        key: impersonate_groups
requirements:
  - python >= 3.10
  - PyYAML, when a kubeconfig is read
  - kubernetes >= 28.1.0, only when the kubeconfig gets its credentials from a plugin
"""
