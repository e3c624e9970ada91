# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose virt-handler is silent get no new machines until it serves again.

    world               the input of a decision, and the action    (values)
    decide              pure
    lease_observations  how long each Lease has not been renewed
    reconciler          observe -> decide -> apply

A virt-handler that was killed or is unreachable cannot change its Node's label `kubevirt.io/schedulable`, and machines
would be scheduled to a node where nothing starts them. The leader of virt-controller sets the label to "false" when it
has watched the Lease for its whole duration without a renewal. Only virt-handler sets it to "true", because only it
knows whether it serves; it checks the label after a failed renewal and periodically. The two never overwrite each other
again and again: virt-controller writes only without a renewed Lease, and virt-handler only with one.

Running guests are not touched: silence is no proof of death.
"""
