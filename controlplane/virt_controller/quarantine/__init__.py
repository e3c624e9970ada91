# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes on which runs do not start get no new machines until a time limit, or until an administrator lifts it.

    quarantine_label     the Node's label, and who wrote it         (pure)
    failure_attribution  runs that failed on a node and then started on another
    quarantined_nodes    the nodes that are quarantined now
    world                the input of a decision, and the actions   (values)
    decide               pure
    reconciler           observe -> decide -> apply, for all Nodes at once

A failure is attributed to a node if only the node can be the cause and the same run has started on another node: if a
run fails on all nodes, none is the cause. A quarantine needs failures of three machines of two namespaces within ten
minutes, and no guest that started there since. At most half of the nodes are quarantined. All Nodes share one key, so
there is one decision at a time; a new leader waits until the writes of the former one have taken effect.

A quarantine affects neither running guests nor other Pods.
"""
