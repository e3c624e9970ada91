# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orphans: what a migration leaves whose object is gone before it was over, because its finalizer was taken off.

world, decide: pure. reconciler: caches in, writes out. The key is an instance. What becomes of a migration that is
there is migration/.
"""
