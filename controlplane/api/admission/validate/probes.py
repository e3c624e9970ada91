# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about probes: those that Kubernetes would refuse in the Pod, and those that could never succeed."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.problem import Problem, below
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.probes import Exec, Probe

COMMAND_BYTES = 4096
"""Limit of all words of a command together."""
_HANDLERS = "exec, guestAgentPing, httpGet or tcpSocket"


def check_probes(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check the probes, and that the guest receives connections to their ports."""
    for name, probe in (("livenessProbe", spec.liveness_probe), ("readinessProbe", spec.readiness_probe)):
        if probe is not None:
            yield from _probe(probe, spec, below(path, name))
    liveness = spec.liveness_probe
    if liveness is not None and liveness.success_threshold > 1:
        where = below(path, "livenessProbe.successThreshold")
        yield Problem(where, "must be 1 in a livenessProbe; set 1 or remove it")
    if liveness is not None and spec.is_start_paused:
        text = "a guest that waits for an unpause passes no livenessProbe; remove one of the two"
        yield Problem(below(path, "startStrategy"), text)


def _probe(probe: Probe, spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    if not probe.handlers:
        yield Problem(path, f"does not say how to ask; set one of {_HANDLERS}", "FieldValueRequired")
    elif len(probe.handlers) > 1:
        yield Problem(path, f"has {' and '.join(probe.handlers)}; a probe has exactly one, remove the others")
    if probe.exec is not None:
        yield from _command(probe.exec, below(path, "exec.command"))
    if probe.guest_agent_ping:
        yield Problem(below(path, "guestAgentPing"), "takes no settings; write guestAgentPing: {}")
    for name, handler in (("httpGet", probe.http_get), ("tcpSocket", probe.tcp_socket)):
        if handler is not None:
            yield from _reachable(handler.port, spec, below(path, name))


def _command(handler: Exec, path: str) -> Iterator[Problem]:
    if not handler.command or not handler.command[0]:
        yield Problem(path, "must name a program; write e.g. [cat, /run/ready]", "FieldValueRequired")
    size = sum(len(word.encode(errors="surrogatepass")) for word in handler.command)
    if size > COMMAND_BYTES:
        text = f"has {size} bytes in all, at most {COMMAND_BYTES} are allowed; put the program into the guest"
        yield Problem(path, text)
    if any("\0" in word for word in handler.command):
        yield Problem(path, "has a zero byte, which no program can be given; remove it")


def _reachable(port: int, spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check that connections to this port of the Pod are forwarded to the guest."""
    pods = {entry.name for entry in spec.networks if entry.pod is not None}
    interface = next((entry for entry in spec.domain.devices.interfaces if entry.name in pods), None)
    if interface is None:
        text = "needs an interface on the Pod network; add one, or use exec or guestAgentPing"
        yield Problem(path, text)
    elif interface.ports and port not in {entry.port for entry in interface.ports if entry.protocol in ("", "TCP")}:
        text = f"{port} is not forwarded to the guest; add it to the ports of interface {interface.name}"
        yield Problem(below(path, "port"), text)
