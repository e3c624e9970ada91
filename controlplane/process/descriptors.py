# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many descriptors a process may have, and how many of them peers may use up.

1,024 are usual; a launcher takes three or four of virt-handler's.
"""

from __future__ import annotations

import resource

WANTED = 65536


def raise_descriptor_limit() -> None:
    """Raise the soft limit as far as is wanted and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_limit(connections: int) -> int:
    """Return how many connections to accept: at most a quarter of the descriptors."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if soft == resource.RLIM_INFINITY else min(connections, max(1, soft // 4))
