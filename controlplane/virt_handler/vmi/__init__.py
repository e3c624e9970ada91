# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VMI of this node: observe -> decide -> apply. Everything but the reconciler is pure.

world            the observed state, and the actions      liveness      alive, dead (with proof), or unknown
decide           which action comes next                  status        the VMI's status
launcher_status  what a look at the domain changes        user_requests which user requests a state allows
migration_source the source's part in a migration         hotplug       CPUs and memory of a running guest
guest_network    the MAC address and network of the plan  events        the Events of a run
ports            what it needs of the node's launchers    reconciler    reads caches and sessions, writes
"""
