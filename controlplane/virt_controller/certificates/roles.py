# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which key pairs there are: one per role and direction, each in a Secret of its own, none good for another's part.

A server's pair is not for clients and a client's not for servers (extended key usage); a URI in each names its role,
and whoever verifies a peer compares it with the one role that it expects. So a virt-handler cannot call another as if
it were virt-api.

What a virt-handler serves with is not among them, nor what it shows another one in a migration: RBAC cannot tell nodes
apart, so a Secret would be every node's, and a captured one could pass for another. Each makes pairs of its own that
never leave its process, and annotations of its Node, which only it may write, say by which certificates it is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.tls.certificates import Subject, Usage
from controlplane.tls.contexts import VIRT_API_CLIENT, role_uri


@dataclass(frozen=True, slots=True)
class Role:
    """A part that some process plays towards some other."""

    name: str
    """In the URI and, for a client, the common name."""
    secret: str
    usage: Usage
    hosts: tuple[str, ...] = ()
    """The names that clients ask for, without the namespace."""
    trusts: bool = True
    """Its holder verifies peers of ours: the bundle stands beside the pair."""


ROLES: tuple[Role, ...] = (
    Role("virt-api/server", "kubevirt-virt-api-certs", "server", ("virt-api",), trusts=False),
    Role(VIRT_API_CLIENT, "kubevirt-virt-api-client-certs", "client"),
)


def subject(role: Role, namespace: str) -> Subject:
    """Return whom the role's certificate is of."""
    names = tuple(f"{host}.{namespace}.svc{end}" for host in role.hosts for end in ("", ".cluster.local"))
    return Subject(
        common_name=names[0] if names else role.name,
        usage=role.usage,
        dns_names=names,
        uri=role_uri(namespace, role.name),
    )
