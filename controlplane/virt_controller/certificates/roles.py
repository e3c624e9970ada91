# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key pairs: one per role and direction, each in its own Secret and valid for that role only.

The extended key usage separates server pairs from client pairs. A URI in the certificate names the role, and a verifier
accepts only the role that it expects. So a virt-handler cannot impersonate virt-api to another virt-handler.

virt-handlers' pairs, for serving and migrations, are not in Secrets. RBAC cannot distinguish nodes: every node could
read such a Secret, and a compromised node could impersonate another. Each virt-handler creates its own pairs, which
never leave its process, and publishes the certificates in annotations of its Node, which only it may write.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.tls.certificates import Subject, Usage
from controlplane.tls.contexts import VIRT_API_CLIENT, role_uri


@dataclass(frozen=True, slots=True)
class Role:
    """The role of one process towards another."""

    name: str
    """The role in the URI and, for a client, the common name."""
    secret: str
    usage: Usage
    hosts: tuple[str, ...] = ()
    """The Service names that clients connect to, without the namespace."""
    trusts: bool = True
    """Its process verifies other processes of ours: the Secret also contains the bundle."""


ROLES: tuple[Role, ...] = (
    Role("virt-api/server", "kubevirt-virt-api-certs", "server", ("virt-api",), trusts=False),
    Role(VIRT_API_CLIENT, "kubevirt-virt-api-client-certs", "client"),
)


def subject(role: Role, namespace: str) -> Subject:
    """Return the subject of the role's certificate."""
    names = tuple(f"{host}.{namespace}.svc{end}" for host in role.hosts for end in ("", ".cluster.local"))
    return Subject(
        common_name=names[0] if names else role.name,
        usage=role.usage,
        dns_names=names,
        uri=role_uri(namespace, role.name),
    )
