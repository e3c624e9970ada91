# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.probes import check_probes
from controlplane.api.admission.verdict import Request, review
from controlplane.api.objects.decode import decode
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Resource
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import SETTINGS, assert_refused, each, row

POD = {"networks": [{"name": "default", "pod": {}}]}
CONNECT = {"livenessProbe": {"tcpSocket": {"port": 53}}}


def problems(ports: list[dict[str, Any]] | None, **spec: Any) -> list[str]:
    """Return the problems of probes beside an interface with these ports; None: no interface."""
    interfaces = [] if ports is None else [{"name": "default", "masquerade": {}, "ports": ports}]
    whole = {"domain": {"devices": {"interfaces": interfaces}}, **spec}
    return [str(probe) for probe in check_probes(decode(whole, VirtualMachineInstanceSpec), "spec")]


@pytest.mark.parametrize(
    "ports",
    [
        pytest.param([], id="all are forwarded"),
        pytest.param([{"port": 53}], id="this one is"),
        pytest.param([{"port": 1}, {"port": 53, "protocol": "TCP"}], id="it is among others"),
    ],
)
def test_a_port_that_leads_to_the_guest_is_accepted(ports: list[dict[str, Any]]) -> None:
    assert problems(ports, **POD, **CONNECT) == []


def test_a_port_of_another_protocol_is_refused() -> None:
    (problem,) = problems([{"port": 53, "protocol": "UDP"}], **POD, **CONNECT)

    assert problem == (
        "spec.livenessProbe.tcpSocket.port: 53 is not forwarded to the guest; add it to the ports of interface default"
    )


@pytest.mark.parametrize("probe", ["tcpSocket", "httpGet"])
@pytest.mark.parametrize("kind", [*golden.KINDS, "VirtualMachinePool"], ids=str)
def test_a_machine_that_names_no_interface_has_the_pod_network(kind: Resource | str, probe: str) -> None:
    """It gets it by default, in an instance at once and in a template later."""
    if isinstance(kind, str):
        whole, path = golden.load("pool-cirros"), "spec/virtualMachineTemplate/spec/template/spec"
    else:
        whole = golden.machine(kind)
        path = "spec" if kind == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec"
    for field, value in (
        ("domain/devices/interfaces", []),
        ("networks", []),
        ("livenessProbe", {probe: {"port": 1}}),
        ("readinessProbe", None),
    ):
        whole = golden.changed(whole, f"{path}/{field}", value)

    def judge(obj: dict[str, Any]) -> list[str]:
        return [problem.path for problem in review(Request("CREATE", obj["kind"], "u", "1", obj), SETTINGS).problems]

    assert judge(whole) == []
    without = golden.changed(whole, f"{path}/domain/devices/autoattachPodInterface", False)
    assert judge(without) == [f"{path.replace('/', '.')}.livenessProbe.{probe}"]


def test_without_the_pod_network_tcp_and_http_probes_are_refused() -> None:
    assert problems(None, **CONNECT) == [
        "spec.livenessProbe.tcpSocket: needs an interface on the Pod network; add one, or use exec or guestAgentPing"
    ]


def test_without_the_pod_network_agent_probes_are_accepted() -> None:
    assert problems(None, livenessProbe={"guestAgentPing": {}}, readinessProbe={"exec": {"command": ["true"]}}) == []


def test_a_readiness_probe_may_need_several_successes() -> None:
    assert problems(None, readinessProbe={"guestAgentPing": {}, "successThreshold": 3}) == []


def test_a_guest_that_starts_paused_has_no_liveness_probe() -> None:
    """The probe would end the guest before the user unpauses it."""
    ping = {"guestAgentPing": {}}
    assert problems(None, startStrategy="Paused", livenessProbe=ping) == [
        "spec.startStrategy: a guest that waits for an unpause passes no livenessProbe; remove one of the two"
    ]
    assert problems(None, startStrategy="Paused", readinessProbe=ping) == []


LIVENESS = "livenessProbe"
PING = {"guestAgentPing": {}}

MALFORMED = [
    row("unknown start strategy", "startStrategy", "Lazy", "allowed: Paused"),
    row(
        "probe with two handlers",
        LIVENESS,
        {"tcpSocket": {"port": 80}, "exec": {"command": ["a"]}},
        "has exec and tcpSocket; a probe has exactly one",
    ),
    row("probe without a handler", LIVENESS, {"periodSeconds": 5}, "set one of exec"),
    row("a ping with settings", LIVENESS, {"guestAgentPing": {"a": 1}}, "takes no settings", at="guestAgentPing"),
    row("port 0", LIVENESS, {"tcpSocket": {"port": 0}}, "from 1 to 65535", at="tcpSocket.port"),
    row("a port by name", LIVENESS, {"tcpSocket": {"port": "http"}}, "a whole number", at="tcpSocket.port"),
    row("a port not forwarded", LIVENESS, {"httpGet": {"port": 79}}, "add it to the ports", at="httpGet.port"),
    row(
        "a probe of another host",
        LIVENESS,
        {"httpGet": {"port": 80, "host": "169.254.169.254"}},
        "remove it",
        at="livenessProbe.httpGet.host",
    ),
    row("liveness with two successes", LIVENESS, {**PING, "successThreshold": 2}, "must be 1", at="successThreshold"),
    row("an empty command", LIVENESS, {"exec": {"command": []}}, "must name a program", at="exec.command"),
    row("a long command", LIVENESS, {"exec": {"command": ["a" * 1000] * 5}}, "at most 4096", at="exec.command"),
    row("command with a zero byte", LIVENESS, {"exec": {"command": ["a\x00b"]}}, "zero byte", at="exec.command"),
    row("malformed header", LIVENESS, {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}}, "header", at="name"),
]


@each(MALFORMED)
def test_malformed_probes_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
