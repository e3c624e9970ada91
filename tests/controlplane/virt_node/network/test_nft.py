# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libnftables in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.virt_node.network import nft
from tests.controlplane.virt_node.namespaces import Namespace

root = pytest.mark.root


@pytest.fixture
def inside() -> Iterator[Namespace]:
    made = Namespace()
    yield made
    made.close()


@root
def test_a_transaction_applies_in_the_threads_namespace(inside: Namespace) -> None:
    inside.run(lambda: nft.run("add table ip mine"))
    assert "table ip mine" in inside.run(lambda: nft.run("list tables"))


@root
def test_a_refused_transaction_applies_nothing_and_says_why(inside: Namespace) -> None:
    with pytest.raises(nft.NftError, match="No such file or directory"):
        inside.run(lambda: nft.run("add table ip mine\nadd rule ip absent forward drop\n"))
    assert inside.run(lambda: nft.run("list tables")) == ""


class Kernel:
    """A table that reads as what was written last, spelled in another way; None: there is none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table: str | None = None
        self.written: list[str] = []
        monkeypatch.setattr(nft, "run", self._run)
        monkeypatch.setattr(nft, "_read_back", {})

    def _run(self, commands: str) -> str:
        if commands != "list table ip mine":
            self.written.append(commands)
            self.table = commands.upper()
        elif self.table is None:
            raise nft.NftError("No such file or directory")
        return str(self.table)


def test_a_table_is_written_once_while_it_stays_as_it_was_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    assert [nft.keep("ip mine", "rules") for _unused in range(3)] == [True, False, False]
    assert kernel.written == ["rules"]


@pytest.mark.parametrize("table", [None, "", "OTHERS", "RULES AND MORE"])
def test_a_table_that_is_not_as_it_was_written_is_written_again(
    monkeypatch: pytest.MonkeyPatch, table: str | None
) -> None:
    kernel = Kernel(monkeypatch)
    nft.keep("ip mine", "rules")
    kernel.table = table
    assert nft.keep("ip mine", "rules")
    assert kernel.table == "RULES"


def test_rules_that_were_another_pods_are_looked_at_by_what_they_looked_like_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a transaction looks like is the same everywhere; whether it is there is asked of each Pod."""
    kernel = Kernel(monkeypatch)
    nft.keep("ip mine", "rules")
    kernel.table = None
    assert nft.keep("ip mine", "rules"), "it is missing here"
    assert not nft.keep("ip mine", "rules")


def test_of_ever_new_rules_no_more_is_kept_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch)
    for number in range(nft._REMEMBERED + 10):
        nft.keep("ip mine", f"rules {number}")
    assert len(nft._read_back) <= nft._REMEMBERED
