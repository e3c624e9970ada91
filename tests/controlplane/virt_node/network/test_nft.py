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
    namespace = Namespace()
    yield namespace
    namespace.close()


@root
def test_a_transaction_applies_in_the_threads_namespace(inside: Namespace) -> None:
    inside.run(lambda: nft.run("add table ip mine"))
    assert "table ip mine" in inside.run(lambda: nft.run("list tables"))


@root
def test_a_refused_transaction_applies_nothing_and_raises_the_reason(inside: Namespace) -> None:
    with pytest.raises(nft.NftError, match="No such file or directory"):
        inside.run(lambda: nft.run("add table ip mine\nadd rule ip absent forward drop\n"))
    assert inside.run(lambda: nft.run("list tables")) == ""


class Kernel:
    """A table that reads as the last written rules, spelled differently. None: there is no table."""

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


def test_an_unchanged_table_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    assert [nft.keep("ip mine", "rules") for _unused in range(3)] == [True, False, False]
    assert kernel.written == ["rules"]


@pytest.mark.parametrize("table", [None, "", "OTHERS", "RULES AND MORE"])
def test_a_changed_table_is_written_again(monkeypatch: pytest.MonkeyPatch, table: str | None) -> None:
    kernel = Kernel(monkeypatch)
    nft.keep("ip mine", "rules")
    kernel.table = table
    assert nft.keep("ip mine", "rules")
    assert kernel.table == "RULES"


def test_the_read_back_of_rules_is_shared_between_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same rules read back the same in every Pod. Whether they exist is checked in each Pod."""
    kernel = Kernel(monkeypatch)
    nft.keep("ip mine", "rules")
    kernel.table = None
    assert nft.keep("ip mine", "rules"), "it is missing here"
    assert not nft.keep("ip mine", "rules")


def test_the_number_of_remembered_rules_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch)
    for number in range(nft._MAX_DIGESTS + 10):
        nft.keep("ip mine", f"rules {number}")
    assert len(nft._read_back) <= nft._MAX_DIGESTS
