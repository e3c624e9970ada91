# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose virt-handler is silent: no new machines there, until it serves again.

    world       what a decision knows, and the one action    (values)
    decide      pure
    lease_observations   for how long each Lease was seen to stand still
    reconciler  observe -> decide -> apply

A virt-handler that was killed, or whose node is cut off, cannot take its Node's label `kubevirt.io/schedulable` back,
and machines would be sent where nobody starts them. virt-controller's leader sets it to "false" when it has itself
watched the Lease stand still for all of its duration. Only virt-handler sets it to "true": it alone knows whether it
serves, and it looks after its Node's label when it could not renew for a while, and now and then. So each of the two
writes its own word only, and nothing flaps: a Lease that is renewed is not silent, and a silent virt-handler writes
nothing.

What runs there is not touched: silence is no proof of death.
"""
