# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deterministic simulation: the real reconcilers, sessions and heartbeats on an in-memory API server, under faults.

`make simulate STEPS=N SEED=S` runs it from the shell. Every random choice comes from the seed. Invariants are checked
after each step. The API server, the watch caches and the clock are in tests.support.

World: world, moves (the random steps), mishaps and moments (faults), people (users), settle and rest (the end of a
stretch, without faults), run. Processes: process, turn, loop (tasks that stop at each call), watching, watched_queue;
controller (virt-controller), handler and sessions (virt-handler). Around them: node (kubelet), launcher, libvirt,
agent, kubernetes. Invariants: oracles (what must never happen), controller_promises and handler_promises (preconditions
of each write), answers (responses so far), vm_status_promises, vmi_status_promises, end_promises, start_promises,
attempt_promises, agent_promises (status follows from what was observed), handler_duties, launch_duties, orphan_duties,
last_words, doubts, undone, known, afresh. Simulations of a part, with the same seed: sets (replica sets), marks
(quarantine), comebacks (a node returns), guests (one node), transit (migrations), wires (virt-controller over a faulty
connection).
"""
