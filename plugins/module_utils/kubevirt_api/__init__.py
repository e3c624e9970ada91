# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vocabulary shared by the modules and the control plane. Standard library only; this file imports nothing.

names: groups, labels, finalizers. phases, run_strategies, printable_statuses, condition_types: the states. close_codes:
why streams end.
desired, predicates: questions about objects as plain JSON values. Python 3.10 or later; no I/O in here.
"""
