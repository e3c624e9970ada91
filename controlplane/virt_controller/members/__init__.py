# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the controllers of replica sets and pools: both keep a number of members of one template.

There are never more members than wanted, even if writes are lost or the leader changes:

- Before members are created, a batch is written into the set's status, with the set's resourceVersion as precondition
  (BeginBatch). Of two leaders one succeeds.
- The names of the members are derived from the batch. A second create, by another leader or after a lost response, gets
  AlreadyExists.
- The next batch begins when the cache has every name of the last one.
- When fewer members are missing than the batch has names, the API server has to confirm first which of them exist.

No process stores a count of members, and no decision depends on time. member, cache: the view of a member. watch: which
sets a change of a member enqueues. world: the input of a decision, and the actions. decide, status: pure.
controller_state: what a process knows of earlier batches. reconciler: reads the caches, writes.
"""
