# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-controller's leader shows of machines to a monitoring system, under upstream's names where they fit.

machines: how each machine is, read from the caches when somebody looks. transitions: how long phases took, counted as
they pass. What the processes count of their own work is in controlplane.process.metrics.
"""
