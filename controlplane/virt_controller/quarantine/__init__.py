# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes on which runs do not begin: no new machines there for a while, until it is over or a person says so.

    mark        what a Node's label says, and whose word it is    (pure)
    failures     which runs have failed where and come up elsewhere, as this process saw it
    marked      the nodes that are marked now
    world       what a decision knows, and the actions            (values)
    decide      pure
    reconciler  observe -> decide -> apply, for all Nodes at once

A failure is charged to a node when nobody but the node can be its cause, and when the same run has come up on another:
what fails everywhere is no node's fault. It takes three machines of two namespaces within ten minutes, and no guest
that has come up there since. At most half of the nodes are marked. All Nodes are one key, so that of two that deserve
it the second is judged when the first is marked; a new leader waits until what the one before it has asked for has
happened.

What runs on a marked node is not touched, and neither is the node for anybody else's Pods.
"""
