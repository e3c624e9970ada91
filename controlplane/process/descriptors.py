# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit of file descriptors, and how many connections fit below it.

The usual limit is 1,024; a launcher needs three or four descriptors in virt-handler.
"""

from __future__ import annotations

import resource

WANTED = 65536


def raise_descriptor_limit() -> None:
    """Raise the soft limit to WANTED, or as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def connection_limit(connections: int) -> int:
    """Return how many connections to accept: at most a quarter of the descriptors."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if soft == resource.RLIM_INFINITY else min(connections, max(1, soft // 4))
