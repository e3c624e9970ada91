# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play starts only when all hosts of the one before have finished it, and not merely when none has failed.

Ansible itself starts the next play when hosts were unreachable. It runs the playbooks here, with WORK in place of the
roles; each run takes seconds. Messages and cases of the protocol's tasks are tested without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.playbooks.test_hosts import NAMES, TASKS, a_host
from ansible_collections.virtops.kubevirt.tests.unit.tasks import PLAYBOOKS, load

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
# The connection to this host fails: nothing listens on port 1.
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "touched": True}
ACTED = "was done to"
# The replacement for the tasks of a play: connect to some hosts, print.
WORK = (
    {"ansible.builtin.raw": "true", "changed_when": False, "check_mode": False, "when": "touched | default(false)"},
    {"ansible.builtin.debug": {"msg": ACTED + " {{ inventory_hostname }}."}},
)


def play(
    folder: Path, playbooks: str, hosts: dict[str, dict[str, Any]], *arguments: str, client: str = "localhost"
) -> tuple[int, str]:
    """Run playbooks one after the other, with WORK in each play after the first; return the code and the output.

    hosts: variables of some hosts of the inventory.
    """
    plays: list[dict[str, Any]] = []
    for name in playbooks.split():
        first, *others = yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text())
        framed = ({key: value for key, value in item.items() if key not in ("roles", "become")} for item in others)
        plays += [first, *(item | {"tasks": [dict(task) for task in WORK]} for item in framed)]
    shutil.copytree(TASKS, folder / "tasks")
    shutil.copy(PLAYBOOKS / "select-hosts.yml", folder)
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    groups = {"kubevirt_nodes": ["node-1", "node-2"], "others": ["bastion"]}
    children = {group: {"hosts": {name: hosts.get(name, {}) for name in names}} for group, names in groups.items()}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": LOCAL, "children": children}}))
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml", "-e", f"kubevirt_client={client}"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def acted_on(output: str) -> set[str]:
    """Return the hosts that plays have acted on."""
    return {word.partition('."')[0].strip() for word in output.split(ACTED)[1:]}


def refused(output: str) -> str:
    """Return which hosts a refusal names."""
    return output.partition("is not finished on ")[2].partition(", so the")[0]


@pytest.mark.parametrize(
    ("playbook", "client", "away", "names"),
    [
        pytest.param("deploy", "localhost", "node-2", {"node-1", "node-2"}, id="a node: nothing is installed"),
        pytest.param("upgrade", "node-1", "node-1", {"node-1"}, id="the client: it could not check the cluster"),
    ],
)
def test_the_next_play_does_nothing_when_a_host_is_unreachable(
    playbook: str, client: str, away: str, names: set[str], tmp_path: Path
) -> None:
    code, output = play(tmp_path, playbook, {away: AWAY}, client=client)

    assert code != 0, output
    assert not acted_on(output), output
    assert away in refused(output)
    assert set(refused(output).split(", ")) <= names, output


def test_a_playbook_starts_only_when_the_one_before_has_finished(tmp_path: Path) -> None:
    """As in users' playbooks that import several."""
    code, output = play(tmp_path, "remove deploy", {"node-2": AWAY}, client="bastion")
    second = output.partition("Check which hosts are selected")[2].partition("PLAY [Check which hosts are selected]")[2]

    assert code != 0, output
    assert second
    assert not acted_on(second)
    assert refused(second) == "node-2"


def test_reachable_hosts_stop_nothing(tmp_path: Path) -> None:
    """Also a second playbook, a client that is a node, check mode, and a node that the limit excludes."""
    arguments = ("--limit", "all,localhost,!node-2", "--check")

    code, output = play(tmp_path, "deploy provision", {"node-2": AWAY}, *arguments, client="node-1")

    assert code == 0, output
    assert acted_on(output) == {"node-1"}
    assert output.count(f"{ACTED} node-1") == 4


def test_each_host_reports_tags_that_skip_all_work(tmp_path: Path) -> None:
    arguments = ("--tags", "mine,other", "--skip-tags", "untagged")

    code, output = play(tmp_path, "upgrade", {}, *arguments)

    assert code == 0, output
    assert output.count("NOTHING WAS DONE") == 4
    assert "--tags mine,other --skip-tags untagged skipped all tasks of this play." in output
    assert not acted_on(output)


def proof(
    part: str, ended: dict[str, list[str]], limit: str | None = None, client: str = "localhost", **variables: Any
) -> str:
    """Return the refusal of a play in the second playbook. ended: what hosts have finished."""
    host = a_host(limit, hosts={name: {"__kubevirt_finished": marks} for name, marks in ended.items()}, **variables)
    nodes = ["node-1"] if limit and "!node-2" in limit else ["node-1", "node-2"]
    meant = {"nodes": nodes, "client": [client], "checks": [client], "run": 2}
    host.variables["hostvars"]["localhost"]["__kubevirt_selected"] = meant
    host.variables["__kubevirt_part"] = part
    return host.refusal(TASKS / "require-finished.yml")


DONE = ["nodes 1", "nodes 2"]


@pytest.mark.parametrize(
    ("part", "ended", "names"),
    [
        pytest.param("nodes", {"node-1": DONE, "node-2": DONE}, "", id="all have finished"),
        pytest.param("nodes", {"node-1": DONE}, "node-2", id="one has not"),
        pytest.param("nodes", {"node-1": DONE, "node-2": ["nodes 1"]}, "node-2", id="only in the playbook before"),
        pytest.param("nodes", {"node-1": DONE, "node-2": ["client 2"]}, "node-2", id="only as the client"),
        pytest.param("checks", {}, "localhost", id="the client has not checked"),
        pytest.param("client", {"localhost": ["client 2"]}, "", id="the client has finished"),
    ],
)
def test_hosts_that_have_not_finished_are_named(part: str, ended: dict[str, list[str]], names: str) -> None:
    assert refused(proof(part, ended)) == names


@pytest.mark.parametrize(
    ("part", "case", "words"),
    [
        pytest.param("nodes", {}, "--limit 'all,localhost,!NODE'.", id="no limit"),
        pytest.param("nodes", {"client": "bastion"}, "--limit 'all,!NODE'.", id="a client of the inventory"),
        pytest.param("nodes", {"limit": "kubevirt_nodes:localhost"}, "'kubevirt_nodes:localhost:!NODE'.", id="colons"),
        pytest.param("nodes", {"limit": "a,b:c"}, "--limit 'a,b:c,!NODE'.", id="commas"),
        pytest.param(
            "nodes",
            {"__kubevirt_limit_options": " -e upgrade_not_ready_nodes=true"},
            "--limit 'all,localhost,!NODE' -e upgrade_not_ready_nodes=true.",
            id="an upgrade checks nodes that are not Ready",
        ),
        pytest.param("nodes", {"limit": "all,localhost,!node-2"}, None, id="the last node"),
        pytest.param("client", {}, None, id="no node"),
    ],
)
def test_a_refusal_says_how_to_continue_without_a_node(part: str, case: dict[str, Any], words: str | None) -> None:
    message = proof(part, {}, **case)

    assert "Repair it, and run the playbook again." in message
    assert ("To continue without a node" in message) is (words is not None)
    assert (words or "") in message


@pytest.mark.parametrize("playbook", NAMES)
def test_every_later_play_records_its_end_and_checks_the_one_before(playbook: str) -> None:
    _first, *others = load(PLAYBOOKS / f"{playbook}.yml")
    parts = {"remove": ["client", "nodes"], "upgrade": ["checks", "nodes", "client"]}.get(playbook, ["nodes", "client"])
    ends = [item["post_tasks"][-1] for item in others]
    proofs = [item["pre_tasks"][0] for item in others[1:]]

    assert [item["ansible.builtin.import_tasks"] for item in proofs] == ["tasks/require-finished.yml"] * len(parts[1:])
    assert [item["ansible.builtin.import_tasks"] for item in ends] == ["tasks/finished.yml"] * len(parts)
    assert [item["vars"]["__kubevirt_part"] for item in [*proofs, *ends]] == [*parts[:-1], *parts]
    assert {item["tags"] for item in proofs} == {"always"}
    assert ["tags" in item for item in ends] == [False] * len(ends), "each of its tasks has its own"


def test_a_play_reports_skipped_work_only_when_tags_skip_the_task_that_ends_it() -> None:
    record, end, report = load(TASKS / "finished.yml")

    assert (record["tags"], report["tags"]) == ("always", "always")
    assert end["ansible.builtin.meta"] == "end_host"
    assert "tags" not in end
