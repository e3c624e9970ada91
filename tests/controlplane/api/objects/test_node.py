# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.node import Node


@pytest.mark.parametrize(
    ("taints", "is_out"),
    [
        ((), False),
        (("node.kubernetes.io/out-of-service",), True),
        (("node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service"), True),
        (("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"), False),
        (("node.kubernetes.io/unschedulable",), False),
        (("node.kubernetes.io/out-of-service-soon",), False),
        (("example.com/out-of-service",), False),
    ],
    ids=str,
)
def test_only_a_user_puts_a_node_out_of_service(taints: tuple[str, ...], is_out: bool) -> None:
    """Its machines then start elsewhere. A silent node is no proof that they have stopped."""
    node = decode({"spec": {"taints": [{"key": taint, "effect": "NoExecute"} for taint in taints]}}, Node)

    assert node.is_out_of_service is is_out
