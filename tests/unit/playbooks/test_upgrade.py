# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals, waits and messages of playbook upgrade, with functions in place of the modules that read the cluster.

Its variables are checked in roles/test_variables.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import PLAYBOOKS, Host, load

TASKS = PLAYBOOKS / "tasks"
CHECKS, MACHINES, STATUS = (load(TASKS / f"upgrade-{name}.yml") for name in ("checks", "machines", "status"))
NEW, OLD = "registry/virt-launcher:0.2.0", "registry/virt-launcher:0.1.0"
SERVING = {"kind": "Deployment", "name": "virt-api", "version": "0.2.0", "missing": ""}
STUCK = {"kind": "DaemonSet", "name": "virt-handler", "version": "0.1.0", "missing": "1 of 3 updated, 1 ready"}
FOUND: dict[str, Any] = {
    "owner": "ours",
    "version": "0.1.0",
    "definitions_version": "0.2.0",
    "components": [SERVING, STUCK],
    "nodes_not_ready": [],
    "in_other_launchers": [],
    "check_mode": False,
}
VARIABLES = {
    "__control_plane_version": "0.2.0",
    "__control_plane_image": "registry/control-plane:0.2.0",
    "__control_plane_launcher_image": NEW,
    "control_plane_namespace": "kubevirt",
    "control_plane_workload_update_methods": [],
    "hostvars": {"node-1": {}},
    "__kubevirt_excluded": [],
    "__kubevirt_image_nodes": ["node-1"],
    "__kubevirt_delay": 0,
}
LOCAL = {
    "__control_plane_image": "localhost/virtops/control-plane:0.2.0",
    "__control_plane_launcher_image": "localhost/virtops/virt-launcher:0.2.0",
}


def machine(name: str, reason: str = "", *, undecided: bool = False) -> dict[str, Any]:
    reported = {"can_move": not reason, "undecided": undecided, "reason": reason}
    return {"namespace": "shop", "name": name, "launcher": OLD, **reported}


def migration(vm: str, **annotations: str) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": f"{vm}-1"} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": {"vmiName": vm}}


OURS = migration("ours", **{"kubevirt.io/workloadUpdateMigration": ""})
NOT_READY = "upgrade_not_ready_nodes"
FAR = "node-3.example.com"


def checks(
    found: dict[str, Any], variables: dict[str, Any], migrations: list[dict[str, Any]]
) -> tuple[str, list[bool], list[str]]:
    """Run the checks; return the refusal, for each look at the migrations whether it waits, and the messages."""
    waits: list[bool] = []

    def read_migrations(arguments: dict[str, Any]) -> dict[str, Any]:
        waits.append(arguments.get("wait", False))
        return {"resources": migrations}

    host = Host(
        TASKS,
        {**VARIABLES, "__control_plane_found": FOUND | found, **variables},
        kubevirt_migration_info=read_migrations,
    )
    return host.refusal(CHECKS), waits, host.messages


@pytest.mark.parametrize(
    ("found", "variables", "words"),
    [
        pytest.param(
            {"owner": "none", "components": []}, {}, "Playbook virtops.kubevirt.deploy", id="nothing is there"
        ),
        pytest.param({"components": []}, {}, "no control plane of this collection", id="definitions alone"),
        pytest.param({"nodes_not_ready": ["node-3"]}, {}, "Not Ready: node-3.", id="a node is not Ready"),
        pytest.param({"nodes_not_ready": ["node-3"]}, {NOT_READY: "true"}, "", id="a node is left behind"),
        pytest.param(
            {},
            {"__kubevirt_excluded": ["node-2", "node-3"]},
            "excludes nodes: node-2, node-3. The control plane is replaced on all nodes",
            id="a limit",
        ),
        pytest.param(
            {"nodes_not_ready": ["node-3"]},
            {NOT_READY: True, "__kubevirt_excluded": ["node-2", FAR, "node-33"]},
            "excludes nodes: node-2, node-33. The",
            id="a limit also leaves out nodes that are Ready",
        ),
        pytest.param(
            {"nodes_not_ready": ["10.0.0.2"]},
            {"__kubevirt_excluded": ["10.0.0.2"]},
            "Not Ready: 10.0.0.2.",
            id="a limit without the option",
        ),
        pytest.param(
            {"nodes_not_ready": ["10.0.0.2"]},
            {NOT_READY: True, "__kubevirt_excluded": ["10.0.0.3"]},
            "excludes nodes: 10.0.0.3. The",
            id="addresses have no first part",
        ),
        pytest.param(
            {"nodes_not_ready": ["node-2", FAR, "10.0.0.2"]},
            {NOT_READY: True, "__kubevirt_excluded": ["node-2.example.com", "node-3", "10.0.0.2"]},
            "",
            id="a limit leaves out only what is not Ready",
        ),
        pytest.param(
            {"nodes": ["node-1"]}, {"__kubevirt_excluded": ["node-2", "10.0.0.3"]}, "", id="hosts of another cluster"
        ),
        pytest.param(
            {"nodes": ["node-1", "worker-3"], "nodes_not_ready": ["worker-3"]},
            {NOT_READY: True, "__kubevirt_excluded": ["10.0.0.3"]},
            "",
            id="another cluster's, and one node is not Ready",
        ),
        pytest.param(
            {"nodes": ["node-1.example.com"]},
            {"__kubevirt_excluded": ["node-1", "10.0.0.3"]},
            "excludes nodes: node-1. The",
            id="a node by its first part",
        ),
        pytest.param(
            {"nodes": ["node-1", "node-2"]},
            {"__kubevirt_excluded": ["10.0.0.3"]},
            "excludes nodes: 10.0.0.3. The",
            id="too few hosts remain for the nodes",
        ),
        pytest.param(
            {},
            {"__control_plane_image": "localhost/virtops/control-plane:0.3.0"},
            "would run localhost/virtops/control-plane:0.3.0, and node-1 gets localhost/virtops/",
            id="images of another tag",
        ),
        pytest.param(
            {},
            LOCAL | {"launcher_image_registry": "registry.example/virtops"},
            "virt-launcher:0.2.0, and node-1 gets registry.example/virtops/control-plane:0.2",
            id="images of another registry",
        ),
        pytest.param(
            {},
            LOCAL | {"hostvars": {"node-1": {"launcher_image_tag": "9"}}},
            "and node-1 gets localhost/virtops/control-plane:9, localhost/virtops/virt-launcher:9.",
            id="images of a host's own tag",
        ),
        pytest.param({}, LOCAL, "", id="the images on the nodes"),
        pytest.param(
            {},
            LOCAL | {"launcher_image_names": ["test-guest"], "launcher_image_tag": "9"},
            "",
            id="images that somebody else brings",
        ),
        pytest.param(
            {},
            {"__control_plane_image": "localhost/virtops/control-plane@sha256:1", "launcher_image_tag": "9"},
            "",
            id="an image by digest",
        ),
    ],
)
def test_what_is_no_upgrade_is_refused(found: dict[str, Any], variables: dict[str, Any], words: str) -> None:
    refusal, _waits, messages = checks(found, variables, [])

    assert words in refusal if words else refusal == ""
    assert bool(messages) is not bool(words)


MOVING = [migration("web", team="a"), migration("db"), OURS]


@pytest.mark.parametrize(
    ("migrations", "variables", "is_check", "refusal", "waits"),
    [
        pytest.param(MOVING, {}, False, "Migrations are in progress: shop/web, shop/db. The", [False], id="refused"),
        pytest.param([OURS], {}, False, "", [False], id="virt-controller makes its own again"),
        pytest.param(MOVING, {"upgrade_wait_migrations": True}, False, "", [False, True], id="waited for"),
        pytest.param(MOVING, {"upgrade_wait_migrations": True}, True, "", [False], id="not waited for in check mode"),
    ],
)
def test_migrations_in_progress_are_not_interrupted(
    migrations: list[dict[str, Any]], variables: dict[str, Any], is_check: bool, refusal: str, waits: list[bool]
) -> None:
    message, waited, _messages = checks({"check_mode": is_check}, variables, migrations)

    assert message.startswith(refusal) if refusal else message == ""
    assert waited == waits


def test_both_versions_are_reported_before_anything_changes() -> None:
    (message,) = checks({}, {}, [])[2]
    assert f"from version 0.1.0 to 0.2.0 (registry/control-plane:0.2.0, launchers: {NEW})." in message


def machines(
    reads: list[list[dict[str, Any]]], variables: dict[str, Any], *, is_check: bool = False
) -> tuple[str, str, int]:
    """Return the refusal, the message and the number of looks.

    reads: machines in an older launcher at each look; the last one repeats.
    """
    remaining, looks = list(reads), 0

    def read(_arguments: dict[str, Any]) -> dict[str, Any]:
        nonlocal looks
        looks += 1
        current = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return FOUND | {"in_other_launchers": current, "check_mode": is_check}

    host = Host(TASKS, {**VARIABLES, **variables}, kubevirt_control_plane_info=read)
    refusal = host.refusal(MACHINES)
    return refusal, host.messages[0], looks


WEB, DB = machine("web"), machine("db", "a disk is the node's")
WAIT = {
    "upgrade_wait_machines": True,
    "upgrade_wait_timeout": 1,
    "control_plane_workload_update_methods": ["LiveMigrate"],
}
EVICT = WAIT | {"control_plane_workload_update_methods": ["LiveMigrate", "Evict"]}


@pytest.mark.parametrize(
    ("reads", "variables", "words"),
    [
        pytest.param([[]], {}, f"All machines are in launcher {NEW}.", id="none"),
        pytest.param(
            [[WEB, DB]],
            {},
            f"shop/web ({OLD}); shop/db ({OLD}, cannot migrate: a disk is the node's). They stay there until they are",
            id="without a method",
        ),
        pytest.param(
            [[WEB]],
            {"control_plane_workload_update_methods": ["Evict"]},
            f"shop/web ({OLD}). They are being moved to it (Evict).",
            id="with a method",
        ),
        pytest.param(
            [[machine("db", "it is Scheduled", undecided=True)], []], WAIT, "All machines", id="one that starts"
        ),
        pytest.param([[WEB], []], WAIT | {"upgrade_wait_timeout": 10}, "All machines", id="one that leaves in time"),
    ],
)
def test_machines_in_an_older_launcher_are_reported(
    reads: list[list[dict[str, Any]]], variables: dict[str, Any], words: str
) -> None:
    refusal, message, _looks = machines(reads, variables)

    assert refusal == ""
    assert words in message


@pytest.mark.parametrize(
    ("current", "variables", "parts", "without", "looks"),
    [
        pytest.param(
            [DB],
            WAIT,
            [
                f"still in an older launcher: shop/db ({OLD}, cannot migrate: a disk is the node's).",
                "Restart them (kubevirt_vm with state=restarted), evict them (control_plane_workload_upd",
            ],
            "wait longer",
            1,
            id="cannot be moved: not waited for",
        ),
        pytest.param(
            [WEB], WAIT, ["methods with Evict), wait longer for those that"], "check what blocks", 2, id="too slow"
        ),
        pytest.param(
            [DB],
            EVICT,
            ["state=restarted), check what blocks their evictions (evictionStrategy, disruption budgets), wait l"],
            "evict them",
            2,
            id="its eviction is refused",
        ),
    ],
)
def test_machines_that_stay_fail_an_upgrade_that_waits_for_them(
    current: list[dict[str, Any]], variables: dict[str, Any], parts: list[str], without: str, looks: int
) -> None:
    refusal, _message, number = machines([current], variables)

    assert [part for part in parts if part not in refusal] == [], refusal
    assert without not in refusal
    assert number == looks
    refusal, _message, number = machines([current], variables, is_check=True)
    assert (refusal, number) == ("", 1), "check mode does not wait"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(
            FOUND,
            "Apply it: webhook says no. Status: definitions 0.2.0; virt-api 0.2.0; virt-handler 0.1.0 (1 of 3"
            " updated, 1 ready). Machines keep running.",
            id="components",
        ),
        pytest.param(
            {"failed": True, "msg": "the API server does not answer"},
            "Status: unknown (the API server does not answer).",
            id="no answer",
        ),
    ],
)
def test_a_failed_upgrade_reports_its_status(answer: dict[str, Any], words: str) -> None:
    failing = {
        "block": [{"name": "Apply it", "ansible.builtin.fail": {"msg": "webhook says no."}}],
        "rescue": STATUS,
    }
    host = Host(TASKS, VARIABLES, kubevirt_control_plane_info=lambda _arguments: answer)

    assert words in " ".join(host.refusal([failing]).split())
