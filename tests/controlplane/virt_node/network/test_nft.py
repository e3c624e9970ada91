# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libnftables in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.virt_node.network import nft
from tests.controlplane.virt_node.namespaces import Namespace

pytestmark = pytest.mark.root


@pytest.fixture
def inside() -> Iterator[Namespace]:
    made = Namespace()
    yield made
    made.close()


def test_a_transaction_applies_in_the_threads_namespace(inside: Namespace) -> None:
    inside.run(lambda: nft.run("add table ip mine"))
    assert "table ip mine" in inside.run(lambda: nft.run("list tables"))


def test_a_refused_transaction_applies_nothing_and_says_why(inside: Namespace) -> None:
    with pytest.raises(nft.NftError, match="No such file or directory"):
        inside.run(lambda: nft.run("add table ip mine\nadd rule ip absent forward drop\n"))
    assert inside.run(lambda: nft.run("list tables")) == ""
