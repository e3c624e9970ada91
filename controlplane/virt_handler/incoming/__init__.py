# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target's side of a migration, until its commit.

world, decide and status are pure. reconciler reads caches and sessions, and writes. migration/ implements the tunnels.
After it (docs/adr/0016) vmi/ handles the VMI like any other.
"""
