# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target's part in a migration: what a node does for an instance until the instance is handed over to it.

world, decide, status: pure. reconciler: reads caches and sessions, writes. The tunnels that it opens are in migration/.
From the commit on (docs/adr/0016) the instance is handled in vmi/, like any other.
"""
