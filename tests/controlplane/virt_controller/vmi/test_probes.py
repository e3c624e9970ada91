# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.launch_plan import AgentProbe
from controlplane.api.objects.decode import decode
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.virt_controller.vmi.probes import agent_probes, build_probes

ASKING = ["/usr/bin/python3", "-I", "-B", "-m", "controlplane.virt_launcher.probe"]


def a_spec(**probes: dict[str, Any]) -> VirtualMachineInstanceSpec:
    return decode({"domain": {}, **probes}, VirtualMachineInstanceSpec)


def test_a_machine_without_probes_has_none() -> None:
    assert build_probes(a_spec()) == {}
    assert agent_probes(a_spec()) == ()


def test_network_probes_stay_unchanged() -> None:
    probe = {"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": "b"}]}, "initialDelaySeconds": 5}

    assert build_probes(a_spec(readinessProbe=probe)) == {"readinessProbe": probe}
    assert agent_probes(a_spec(readinessProbe=probe)) == ()


def test_agent_probes_become_commands_without_user_input() -> None:
    spec = a_spec(livenessProbe={"exec": {"command": ["rm", "-rf"]}, "timeoutSeconds": 4, "initialDelaySeconds": 60})

    assert build_probes(spec) == {
        "livenessProbe": {
            "exec": {"command": [*ASKING, "livenessProbe"]},
            "initialDelaySeconds": 70,
            "timeoutSeconds": 5,
        }
    }
    assert agent_probes(spec) == (AgentProbe("livenessProbe", ("rm", "-rf"), 4),)


def test_a_ping_has_no_command_and_a_timeout_of_a_second() -> None:
    spec = a_spec(readinessProbe={"guestAgentPing": {}, "failureThreshold": 2})

    assert build_probes(spec)["readinessProbe"] == {
        "exec": {"command": [*ASKING, "readinessProbe"]},
        "failureThreshold": 2,
        "initialDelaySeconds": 10,
        "timeoutSeconds": 2,
    }
    assert agent_probes(spec) == (AgentProbe("readinessProbe", (), 1),)


@pytest.mark.parametrize("way", ["httpGet", "tcpSocket"])
def test_network_probes_of_a_target_start_when_the_guest_has_arrived(way: str) -> None:
    probe = {way: {"port": 80}, "periodSeconds": 3}
    spec = a_spec(livenessProbe=probe)

    built = build_probes(spec, is_target=True)

    assert built["livenessProbe"] == probe
    assert built["startupProbe"]["exec"] == {"command": [*ASKING, "startupProbe"]}
    assert built["startupProbe"]["failureThreshold"] > 10**9
    assert built["startupProbe"]["timeoutSeconds"] > 3600, "it waits, and each failure would be an Event"
    assert agent_probes(spec, is_target=True) == (AgentProbe("startupProbe", (), 1),)


@pytest.mark.parametrize(
    "probes",
    [
        {"livenessProbe": {"exec": {"command": ["true"]}}},
        {"livenessProbe": {"guestAgentPing": {}}},
        {"readinessProbe": {"httpGet": {"port": 80}}},
    ],
)
def test_probes_that_end_nothing_start_at_once_on_a_target(probes: dict[str, Any]) -> None:
    spec = a_spec(**probes)

    assert build_probes(spec, is_target=True) == build_probes(spec)
    assert agent_probes(spec, is_target=True) == agent_probes(spec)
