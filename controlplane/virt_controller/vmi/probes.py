# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's probes as those of its launcher's container. Pure.

httpGet and tcpSocket stay what they are: the Pod's address leads to the guest. exec and guestAgentPing become a
command in the launcher that is told only which probe it is; what that asks of the guest is in the launch plan.
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


def build_probes(spec: VirtualMachineInstanceSpec) -> Json:
    """Return the container's livenessProbe and readinessProbe, as far as there are any."""
    return {name: _build(name, probe) for name, probe in _named(spec).items()}


def agent_probes(spec: VirtualMachineInstanceSpec) -> tuple[AgentProbe, ...]:
    """Return what the launcher asks of the guest's agent when the kubelet asks the launcher."""
    return tuple(
        AgentProbe(name=name, command=probe.exec.command if probe.exec else (), timeout_seconds=_timeout(probe))
        for name, probe in _named(spec).items()
        if _is_agent_asked(probe)
    )


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
