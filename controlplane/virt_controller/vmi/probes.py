# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's probes as those of its launcher's container. Pure.

httpGet and tcpSocket stay what they are: the Pod's address leads to the guest. exec and guestAgentPing become a
command in the launcher that is told only which probe it is; what that asks of the guest is in the launch plan.

Where a guest is to come from another node nobody answers by the network yet. The kubelet has a container's other probes
wait for its startupProbe: that of such a launcher is good once the guest goes on, and never asked again.
"""

from __future__ import annotations

from typing import Any

from controlplane.api.launch_plan import AgentProbe
from controlplane.api.objects.decode import encode
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.probes import Probe

Json = dict[str, Any]

EXTRA_DELAY_SECONDS, EXTRA_TIMEOUT_SECONDS = 10, 1
"""Added where the guest agent is asked, as upstream does: it comes up after the guest, and asking takes a process."""
_COMMAND = ("/usr/bin/python3", "-I", "-B", "-m", "controlplane.virt_launcher.probe")
_STARTUP = "startupProbe"
_UNTIL_IT_COMES: Json = {"periodSeconds": 1, "timeoutSeconds": 86400, "failureThreshold": 2**31 - 1}
"""However long a migration takes: what ends one that takes too long is not the kubelet. The program waits for it."""


def build_probes(spec: VirtualMachineInstanceSpec, *, is_target: bool = False) -> Json:
    """Return the container's probes, as far as there are any. is_target: its guest comes from another node."""
    built = {name: _build(name, probe) for name, probe in _named(spec).items()}
    if is_target and _waits_for_the_guest(spec):
        built[_STARTUP] = {**_UNTIL_IT_COMES, "exec": {"command": [*_COMMAND, _STARTUP]}}
    return built


def agent_probes(spec: VirtualMachineInstanceSpec, *, is_target: bool = False) -> tuple[AgentProbe, ...]:
    """Return what the launcher asks of the guest's agent, or of libvirt, when the kubelet asks the launcher."""
    asked = [
        AgentProbe(name=name, command=probe.exec.command if probe.exec else (), timeout_seconds=_timeout(probe))
        for name, probe in _named(spec).items()
        if _is_agent_asked(probe)
    ]
    if is_target and _waits_for_the_guest(spec):
        asked.append(AgentProbe(name=_STARTUP, command=(), timeout_seconds=1))
    return tuple(asked)


def _waits_for_the_guest(spec: VirtualMachineInstanceSpec) -> bool:
    """Tell whether the kubelet would end a launcher for what its guest, which is yet to come, cannot answer."""
    liveness = spec.liveness_probe
    return liveness is not None and not _is_agent_asked(liveness)


def _named(spec: VirtualMachineInstanceSpec) -> dict[str, Probe]:
    probes = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: probe for name, probe in probes.items() if probe is not None}


def _build(name: str, probe: Probe) -> Json:
    plain: Json = encode(probe)
    if not _is_agent_asked(probe):
        return plain
    rest = {key: value for key, value in plain.items() if key not in ("exec", "guestAgentPing")}
    return {
        **rest,
        "exec": {"command": [*_COMMAND, name]},
        "initialDelaySeconds": probe.initial_delay_seconds + EXTRA_DELAY_SECONDS,
        "timeoutSeconds": _timeout(probe) + EXTRA_TIMEOUT_SECONDS,
    }


def _timeout(probe: Probe) -> int:
    return probe.timeout_seconds or 1


def _is_agent_asked(probe: Probe) -> bool:
    return probe.exec is not None or probe.guest_agent_ping is not None
