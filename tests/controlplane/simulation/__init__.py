# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deterministic simulation: the real reconcilers, sessions and heartbeats on an in-memory API, under faults.

Checked at every step. tests.support: the API server in memory, the clock. watching: watch streams that lag.
process, turn, loop: real tasks,
stoppable at every call. controller: virt-controller. handler, sessions: virt-handler; libvirt: what its sessions meet.
node: kubelet, launcher, guest; agent: whoever speaks for it, and agent_promises. returns: when a node came back.
listing: which nodes machines are sent to. people: users' operations. moments: what goes wrong when it matters. oracles:
what must never happen, and what must have happened in the end. controller_promises, handler_promises: what each write
must rest on, whatever comes of it: its preconditions, and the questions (answers) asked before. vm_status_promises,
vmi_status_promises, end_promises: that what is said follows from what was seen. handler_duties: what must not be
forgotten until time has passed; orphan_duties: when it is asked whose a guest is. launch_duties, last_words: what
virt-controller owes to a launcher that does not come up, and to a kubelet's last word. doubts: starts that nobody has
answered. known: that no view goes back, and that each is true once all is heard. watched_queue, undone: that no turn is
late, and none forgotten. afresh: that who begins anew at rest finds nothing to do. Plays of their own, with the same
seed: election, candidates on one Lease; sets, a replica set and its instances; marks, nodes on which runs do not begin,
and the quarantine; comebacks, a node whose machines become others' behind its back; guests, what one that has just
begun must find out (set_keeper, mark_keeper, node_keeper: who keeps them); transit, machines that move, with both roles
of virt-handler (transit_guest, transit_stream: libvirt and the tunnel; transit_keeper, transit_world; transit_odds,
transit_mishaps: what goes wrong, and where; transit_oracles, transit_rest); passes, the
real pass on a toy world; workers, the real Runner on another; laid_over, answers that come in any order; wires,
virt-controller whole on a wire on which everything goes wrong
(api_server, wire, whole, disks). world: the random schedule.
`make simulate STEPS=N SEED=S` runs it from the shell.
"""
