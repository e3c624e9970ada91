# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deterministic simulation: the real reconcilers, sessions and heartbeats on an in-memory API server, under faults.

`make simulate STEPS=N SEED=S` runs it from the shell. Every random choice comes from the seed. Invariants are checked
after each step. The API server and the clock are in tests.support.

One world (world, mishaps) has two scenarios: machines (VirtualMachines start, stop and fail) and migrations (running
machines move). Each scenario adds its users, faults, invariants (oracles) and the required state at rest (rest).
Processes: process, turn, loop (tasks that stop at each call), watching, controller (virt-controller), handler and
sessions (virt-handler). Around them: node (kubelet), launcher, libvirt, agent, kubernetes.
Preconditions of writes: controller_preconditions, start_preconditions, handler_preconditions, answers (responses so
far), doubts (starts without a response). undone: work that no timer or event triggers.

Values that a pure function derives are checked by the table tests of that function, not here.
"""
