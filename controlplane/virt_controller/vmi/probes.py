# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's probes as probes of its launcher's container. Pure.

httpGet and tcpSocket stay as they are: the Pod's address leads to the guest. exec and guestAgentPing become a command
in the launcher that gets only the probe's name; the launch plan has the request to the guest.

A migration's target has no guest yet that could respond. The kubelet runs other probes only after the startupProbe, so
the target gets one that succeeds when the guest has arrived.
"""

from __future__ import annotations

from typing import Any

from controlplane.api.launch_plan import AgentProbe
from controlplane.api.objects.decode import encode
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.probes import Probe

Json = dict[str, Any]

EXTRA_DELAY_SECONDS, EXTRA_TIMEOUT_SECONDS = 10, 1
"""Added to probes by the guest agent, as in KubeVirt: the agent starts after the guest, and each call starts a process.
"""
_COMMAND = ("/usr/bin/python3", "-I", "-B", "-m", "controlplane.virt_launcher.probe")
_STARTUP = "startupProbe"
_UNTIL_ARRIVAL: Json = {"periodSeconds": 1, "timeoutSeconds": 86400, "failureThreshold": 2**31 - 1}
"""The kubelet must not end a long migration. The probe's command waits for the guest."""


def build_probes(spec: VirtualMachineInstanceSpec, *, is_target: bool = False) -> Json:
    """Return the container's probes, if any. is_target: the guest arrives by a migration."""
    probes = {name: _build(name, probe) for name, probe in _declared(spec).items()}
    if is_target and _waits_for_the_guest(spec):
        probes[_STARTUP] = {**_UNTIL_ARRIVAL, "exec": {"command": [*_COMMAND, _STARTUP]}}
    return probes


def agent_probes(spec: VirtualMachineInstanceSpec, *, is_target: bool = False) -> tuple[AgentProbe, ...]:
    """Return the probes that the launcher carries out with the guest agent or libvirt."""
    probes = [
        AgentProbe(name=name, command=probe.exec.command if probe.exec else (), timeout_seconds=_timeout(probe))
        for name, probe in _declared(spec).items()
        if _uses_agent(probe)
    ]
    if is_target and _waits_for_the_guest(spec):
        probes.append(AgentProbe(name=_STARTUP, command=(), timeout_seconds=1))
    return tuple(probes)


def _waits_for_the_guest(spec: VirtualMachineInstanceSpec) -> bool:
    """Tell whether the kubelet would end a launcher because its guest, which has not arrived, cannot respond."""
    liveness = spec.liveness_probe
    return liveness is not None and not _uses_agent(liveness)


def _declared(spec: VirtualMachineInstanceSpec) -> dict[str, Probe]:
    probes = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: probe for name, probe in probes.items() if probe is not None}


def _build(name: str, probe: Probe) -> Json:
    manifest: Json = encode(probe)
    if not _uses_agent(probe):
        return manifest
    rest = {key: value for key, value in manifest.items() if key not in ("exec", "guestAgentPing")}
    return {
        **rest,
        "exec": {"command": [*_COMMAND, name]},
        "initialDelaySeconds": probe.initial_delay_seconds + EXTRA_DELAY_SECONDS,
        "timeoutSeconds": _timeout(probe) + EXTRA_TIMEOUT_SECONDS,
    }


def _timeout(probe: Probe) -> int:
    return probe.timeout_seconds or 1


def _uses_agent(probe: Probe) -> bool:
    return probe.exec is not None or probe.guest_agent_ping is not None
