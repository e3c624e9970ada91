# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controllers of replica sets and pools share: they keep a number of members of one template.

Never more members than wanted, whichever writes are lost and whichever replica leads:

- Before members are created, a batch is written into the set's status, with the set's resourceVersion as precondition
  (BeginBatch). Of two leaders one succeeds.
- The names of the members follow from the batch. Creating one again, by another leader or after a lost response, gets
  AlreadyExists.
- The next batch begins when every name of the last one was seen.
- When fewer members are missing than the batch has names, the API server is asked first which of them exist.

No process keeps a count of members, and nothing depends on time. member, cache: what is read of a member. world:
what a decision is based on, and the actions. decide, status: pure. controller_state: what a process knows of earlier
batches. reconciler: reads the caches, writes.
"""
