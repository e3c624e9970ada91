# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether any node could ever take a machine."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import no_node

GI = 2.0**30


def a_node(name: str = "n1", memory: str = "16Gi", cpu: str = "4", **labels: str) -> dict[str, Any]:
    allocatable = {"memory": memory, "cpu": cpu, "devices.kubevirt.io/kvm": "0"}
    own = {"kubevirt.io/schedulable": "true", **labels}
    return {"metadata": {"name": name, "labels": own}, "status": {"allocatable": allocatable}}


BUSY = a_node("n3", "1Gi", **{"kubevirt.io/schedulable": "false"})
NO_RUNNER = {"metadata": {"name": "n4"}, "status": {"allocatable": {"memory": "900Gi", "cpu": "99"}}}
SMALL, LARGE = a_node("n1", "8Gi", "16", disk="ssd"), a_node("n2", "32Gi", "2", disk="hdd")
SSD, NVME = {"disk": "ssd"}, {"disk": "nvme", "zone": "a"}


@pytest.mark.parametrize(
    ("requests", "selector", "nodes", "words"),
    [
        pytest.param({"memory": 4 * GI, "cpu": 1}, {}, [SMALL], None, id="fits, if others go"),
        pytest.param({"memory": 16 * GI}, {}, [SMALL, LARGE], None, id="fits on one"),
        pytest.param({}, {}, [SMALL], None, id="nothing is known of it"),
        pytest.param({"memory": 900 * GI}, {}, [SMALL], "900Gi of memory, and no node has more than 8Gi", id="memory"),
        pytest.param({"memory": 900 * GI}, {}, [LARGE, NO_RUNNER], "more than 32Gi of memory", id="of no other use"),
        pytest.param({"cpu": 99.0}, {}, [SMALL, LARGE], "for 99 CPUs, and no node has more than 16 CPUs", id="CPUs"),
        pytest.param({"hugepages-2Mi": GI}, {}, [SMALL], "1Gi of hugepages-2Mi, and no node has", id="huge pages"),
        pytest.param(
            {"memory": 16 * GI, "cpu": 8}, {}, [SMALL, LARGE], "has 16Gi of memory and 8 CPUs together", id="both"
        ),
        pytest.param({"memory": GI}, NVME, [SMALL, LARGE], "no node has the labels disk=nvme, zone=a", id="labels"),
        pytest.param(
            {"memory": 16 * GI}, SSD, [SMALL, LARGE], "no node with disk=ssd has more than 8Gi", id="of those"
        ),
        pytest.param({"memory": GI}, {}, [BUSY], None, id="its virt-handler may come back"),
        pytest.param({"memory": 2 * GI}, {}, [BUSY], "more than 1Gi of memory", id="and it is too small"),
        pytest.param({"memory": 900 * GI}, {}, [NO_RUNNER], None, id="no node runs machines yet"),
        pytest.param({"memory": 900 * GI}, {}, [], None, id="nodes cannot be read"),
    ],
)
def test_reason(requests: Any, selector: Any, nodes: list[Any], words: str | None) -> None:
    reason = no_node.reason(requests, selector, nodes)
    assert reason is None if words is None else words in (reason or "")


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([SMALL], "there is no other node that runs machines"),
        ([SMALL, LARGE], None),
        ([SMALL, a_node("n2", "1Gi")], "no node has more than 1Gi of memory"),
        ([], None),
    ],
)
def test_a_migration_leaves_its_node(nodes: list[Any], words: str | None) -> None:
    reason = no_node.reason({"memory": 2 * GI}, {}, nodes, without="n1")
    assert reason is None if words is None else words in (reason or "")


def test_a_pod_asks_for_all_its_containers_and_for_its_largest_init_container() -> None:
    def container(**requests: str) -> dict[str, Any]:
        return {"resources": {"requests": requests}}

    spec = {
        "containers": [container(memory="1Gi", cpu="100m"), container(memory="512Mi"), {}],
        "initContainers": [container(memory="3Gi", cpu="50m")],
    }
    assert no_node.requests_of_pod({"spec": spec}) == {"memory": 3 * GI, "cpu": 0.1}
    assert no_node.requests_of_pod({}) == {}


@pytest.mark.parametrize(
    ("domain", "requests"),
    [
        ({"memory": {"guest": "2Gi"}}, {"memory": 2 * GI}),
        (
            {"memory": {"guest": "2Gi"}, "resources": {"requests": {"memory": "1Gi", "cpu": "2"}}},
            {"memory": GI, "cpu": 2},
        ),
        ({"memory": {"guest": "2Gi"}, "resources": {"requests": {"cpu": "2"}}}, {"memory": 2 * GI, "cpu": 2}),
        ({"memory": {"guest": "much"}}, {}),
        ({}, {}),
    ],
)
def test_a_machine_asks_for_its_requests_or_the_memory_of_its_guest(domain: Any, requests: Any) -> None:
    assert no_node.requests_of_machine({"domain": domain}) == requests


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, ""),
        (
            {"containers": [{"resources": {"requests": {"memory": "2Gi", "cpu": "1"}}}]},
            "it asks for 2Gi of memory and 1 CPU",
        ),
        (
            {"containers": [{"resources": {"requests": {"memory": "2Gi"}}}], "nodeSelector": SSD},
            "it asks for 2Gi of memory on a node with disk=ssd",
        ),
    ],
)
def test_what_a_pod_asks_for_in_words(spec: Any, text: str) -> None:
    assert no_node.pod_requests_text({"spec": spec}) == text


def test_labels_of_the_control_plane_do_not_count() -> None:
    own = {"kubevirt.io/schedulable": "true", "cpu-model.node.kubevirt.io/Skylake": "true"}
    assert no_node.selector_of({"nodeSelector": {**own, **SSD}}) == SSD
    assert no_node.selector_of({}) == {}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1), ("100m", 0.1), ("1k", 1e3), ("1M", 1e6), ("2G", 2e9), ("1T", 1e12), ("1P", 1e15), ("1E", 1e18),
        ("1Ki", 2**10), ("1Mi", 2**20), ("1.5Gi", 1.5 * 2**30), ("1Ti", 2**40), ("1Pi", 2**50), ("1Ei", 2**60),
        ("1e3", 1e3), ("5u", 5e-6), ("5n", 5e-9),
    ],
)  # fmt: skip
def test_quantities(text: str, amount: float) -> None:
    pod = {"spec": {"containers": [{"resources": {"requests": {"memory": text}}}]}}
    assert no_node.requests_of_pod(pod)["memory"] == pytest.approx(amount)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("memory", 900 * GI, "900Gi of memory"),
        ("memory", 15.584 * GI, "15.58Gi of memory"),
        ("memory", GI / 2, "512Mi of memory"),
        ("cpu", 0.1, "0.1 CPUs"),
    ],
)
def test_amounts_in_words(resource: str, amount: float, text: str) -> None:
    assert no_node.amount_text(resource, amount) == text
