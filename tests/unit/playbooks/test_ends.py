# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play starts only when all hosts of the one before have finished it, and not merely when none has failed.

Ansible itself starts the next play when hosts were unreachable.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.playbooks.plays import (
    INVENTORY,
    NAMES,
    PLAYBOOKS,
    acted_on,
    looked,
)

# The connection to this host fails: nothing listens on port 1.
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "touched": True}
BROKEN = {"broken": True}
NODES = ("node-1", "node-2")


def inventory(**hosts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the inventory with variables for some of its hosts."""
    return {
        group: {"hosts": {name: hosts.get(name.replace("-", "_"), {}) for name in has["hosts"]}}
        for group, has in INVENTORY.items()
    }


def refused(said: str) -> str:
    """Return which hosts a refusal names."""
    _before, _word, after = said.partition("is not done for ")
    return after.partition(":")[0]


@pytest.mark.parametrize("playbook", ["deploy", "provision"])
@pytest.mark.parametrize("client", ["localhost", "bastion"])
def test_the_client_does_nothing_when_a_node_is_unreachable(playbook: str, client: str, tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(node_2=AWAY), playbook=playbook, kubevirt_client=client)

    assert code != 0, output
    assert client not in acted_on(output)
    assert "node-2" in refused(output)


@pytest.mark.parametrize("client", ["bastion", "node-1"])
def test_no_node_changes_when_the_client_could_not_check_the_cluster(client: str, tmp_path: Path) -> None:
    """In an upgrade the client goes first: otherwise its refusal would come too late for the nodes."""
    away = {client.replace("-", "_"): AWAY}

    code, output = looked(tmp_path, inventory(**away), playbook="upgrade", kubevirt_client=client)

    assert code != 0, output
    assert not acted_on(output)


def test_a_client_that_has_checked_changes_nothing_when_a_node_is_unreachable(tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(node_2=AWAY), playbook="upgrade", kubevirt_client="bastion")

    assert code != 0, output
    assert output.count("was done to bastion") == 1, "it looked at the cluster"
    assert "node-2" in refused(output)


@pytest.mark.parametrize(("away", "broken"), [(NODES, ()), (NODES[:1], NODES[1:]), (NODES[1:], NODES[:1])])
def test_unreachable_nodes_beside_a_failing_one_stop_the_client(
    away: Sequence[str], broken: Sequence[str], tmp_path: Path
) -> None:
    hosts = {name.replace("-", "_"): BROKEN for name in broken} | {name.replace("-", "_"): AWAY for name in away}

    code, output = looked(tmp_path, inventory(**hosts))

    assert code != 0, output
    assert "localhost" not in acted_on(output)


def test_an_unreachable_client_keeps_the_images_of_the_control_plane(tmp_path: Path) -> None:
    """Running machines need them, and removal is refused while there are machines."""
    code, output = looked(tmp_path, inventory(bastion=AWAY), playbook="remove", kubevirt_client="bastion")

    assert code != 0, output
    assert not acted_on(output)
    assert refused(output) == "bastion"
    assert "--limit" not in output


@pytest.mark.parametrize("playbook", NAMES)
def test_a_client_that_is_an_unreachable_node_stops_the_playbook(playbook: str, tmp_path: Path) -> None:
    """The play of the client then has no host, and cannot refuse."""
    code, output = looked(tmp_path, inventory(node_1=AWAY), playbook=playbook, kubevirt_client="node-1")

    assert code != 0, output
    assert acted_on(output) <= ({"node-2"} if playbook != "remove" else set())


@pytest.mark.parametrize(
    ("playbook", "client", "behind"),
    [
        pytest.param("deploy provision", "node-1", "node-1, node-2", id="no host was left that could refuse"),
        pytest.param("remove deploy", "bastion", "node-2", id="a node that has the former images"),
    ],
)
def test_a_playbook_starts_only_when_the_one_before_has_finished(
    playbook: str, client: str, behind: str, tmp_path: Path
) -> None:
    """As in quickstart, and in users' playbooks that import several."""
    code, output = looked(tmp_path, inventory(node_2=AWAY), playbook=playbook, kubevirt_client=client)
    first = output.partition("Look at which hosts are meant")[2]
    second = first.partition("PLAY [Look at which hosts are meant]")[2]

    assert code != 0, output
    assert second
    assert not acted_on(second)
    assert refused(second) == behind


def test_a_finished_earlier_playbook_does_not_count_for_the_next(tmp_path: Path) -> None:
    """The node is reachable for the first playbook, and unreachable for the second."""
    play = "{{ 'ssh' if hostvars['localhost'].__kubevirt_meant.run | default(1) | int > 1 else 'local' }}"

    code, output = looked(
        tmp_path,
        inventory(node_2=AWAY | {"ansible_connection": play}),
        playbook="deploy provision",
        kubevirt_client="bastion",
    )

    assert code != 0, output
    assert "node-2" in refused(output)
    assert output.count("was done to bastion") == 1


@pytest.mark.parametrize(
    ("playbook", "client", "arguments"),
    [
        pytest.param("deploy provision", "node-1", (), id="a client that is a node"),
        pytest.param("deploy provision", "localhost", ("--check",), id="check mode"),
        pytest.param("remove deploy", "bastion", ("--tags", "mine"), id="tags that leave out all work"),
        pytest.param("remove deploy", "bastion", ("--limit", "bastion,node-1"), id="a limit"),
    ],
)
def test_reachable_hosts_stop_nothing(playbook: str, client: str, arguments: Sequence[str], tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(), *arguments, playbook=playbook, kubevirt_client=client)

    assert code == 0, output


def test_a_node_excluded_by_the_limit_is_not_waited_for(tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(node_2=AWAY), "--limit", "all,localhost,!node-2")

    assert code == 0, output
    assert acted_on(output) == {"node-1", "localhost"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param((), "--limit 'all,localhost,!NODE'", id="none so far"),
        pytest.param(("--limit", "kubevirt_nodes:localhost"), "'kubevirt_nodes:localhost:!NODE'", id="with colons"),
        pytest.param(("--limit", "all,localhost,!node-1"), "Make it reachable, or mend it", id="the last node"),
    ],
)
def test_a_refusal_says_how_to_continue(arguments: Sequence[str], words: str, tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(node_2=AWAY), *arguments)

    assert code != 0, output
    assert words in output
    assert ("A node that the cluster does without" in output) is ("!NODE" in words)


def test_the_refusal_of_an_upgrade_suggests_a_command_that_its_checks_accept(tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(node_2=AWAY), playbook="upgrade")

    assert code != 0, output
    assert "by --limit 'all,localhost,!NODE' -e upgrade_not_ready_nodes=true, if it is not Ready." in output


@pytest.mark.parametrize("playbook", NAMES)
def test_every_later_play_records_its_end_and_checks_the_one_before(playbook: str) -> None:
    _first, *others = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())
    parts = {"remove": ["client", "nodes"], "upgrade": ["checks", "nodes", "client"]}.get(playbook, ["nodes", "client"])
    ends = [play["post_tasks"][-1] for play in others]
    proofs = [play["pre_tasks"][0] for play in others[1:]]

    assert [item["ansible.builtin.import_tasks"] for item in proofs] == ["tasks/proof.yml"] * len(parts[1:])
    assert [item["ansible.builtin.import_tasks"] for item in ends] == ["tasks/ended.yml"] * len(parts)
    assert [item["vars"]["__kubevirt_part"] for item in [*proofs, *ends]] == [*parts[:-1], *parts]
    assert {item["tags"] for item in proofs} == {"always"}
    assert ["tags" in item for item in ends] == [False] * len(ends), "of those in it each has its own"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("--tags", "mine,other"), "left out by --tags mine,other.", id="of others"),
        pytest.param(("--skip-tags", "untagged"), "left out by --skip-tags untagged.", id="all that have none"),
        pytest.param((), "", id="none"),
        pytest.param(("--tags", "all"), "", id="all"),
    ],
)
def test_each_host_reports_tags_that_skip_all_work(arguments: Sequence[str], words: str, tmp_path: Path) -> None:
    code, output = looked(tmp_path, inventory(), *arguments, playbook="upgrade")

    assert code == 0, output
    assert output.count("NOTHING WAS DONE") == (4 if words else 0)
    assert words in " ".join(output.split())
    assert bool(acted_on(output)) is not bool(words)
