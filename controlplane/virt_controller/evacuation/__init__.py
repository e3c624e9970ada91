# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evacuation: a VMI that has to leave its node gets a migration, and another one after each failure.

world: the input of a decision. decide: pure. reconciler: reads the caches, writes. The key is a VMI. It has to leave
when virt-api writes status.evacuationNodeName at an eviction, or its node gets a taint; migration/ carries it out.
"""
