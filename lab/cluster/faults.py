# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inject faults: for chaos tests and `lab node kill|freeze|thaw|cut|heal`. `Lab.up` repairs all of them."""

from __future__ import annotations

import os
import signal
import time

from lab.cluster.lab import Lab
from lab.errors import LabError
from lab.machines import cgroup, network
from lab.machines.machine import Machine


def kill_node(lab: Lab, name: str) -> None:
    """Cut a node's power: kill all its processes at once. It stays down until the next `up`."""
    lab.node(name).kill()


def freeze_node(lab: Lab, name: str) -> None:
    """Stop every process of a node, as a hypervisor pauses a machine."""
    cgroup.freeze(_running(lab.node(name)).group, frozen=True)


def thaw_node(lab: Lab, name: str) -> None:
    cgroup.freeze(_running(lab.node(name)).group, frozen=False)


def cut_node(lab: Lab, name: str) -> None:
    """Pull a node's network cable. Its Pods continue to run."""
    network.set_link(_running(lab.node(name)).name, up=False, pid=lab.control_plane.running_pid())


def heal_node(lab: Lab, name: str) -> None:
    """Plug the cable in again."""
    network.set_link(_running(lab.node(name)).name, up=True, pid=lab.control_plane.running_pid())


def kill_program(lab: Lab, program: str, *, node: str | None = None) -> int:
    """Kill one program with SIGKILL. Its machine's init starts it again. Returns the killed pid.

    node: required if several nodes run the program.
    """
    machine, pid = find_program(lab, program, node=node)
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid, machine, program)
    return pid


def find_program(lab: Lab, program: str, *, node: str | None = None) -> tuple[Machine, int]:
    """Return the machine and the host's pid of a running program of the lab."""
    machines = [lab.node(node)] if node else [lab.control_plane, *lab.nodes()]
    matches = []
    programs: set[str] = set()
    for machine in machines:
        states = machine.programs()
        programs |= set(states)
        if program in states and states[program].pid:
            matches.append((machine, states[program].pid))
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise LabError(f"{program} runs on {', '.join(machine.name for machine, _unused in matches)}; add --node NAME")
    raise LabError(
        f"{program} does not run in lab {lab.name!r}; what runs there: {', '.join(sorted(programs)) or 'nothing'}"
    )


def _running(machine: Machine) -> Machine:
    machine.running_pid()
    return machine


def _wait_until_gone(pid: int, machine: Machine, program: str) -> None:
    deadline = time.monotonic() + 5
    while cgroup.namespace_pids(pid):
        if time.monotonic() > deadline:
            raise LabError(f"{program} on {machine.name} (pid {pid}) does not die")
        time.sleep(0.005)
