# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workload updates: migrations and evictions bring running VMIs to the deployed launcher image.

instance_view: the fields of a VMI that matter here. candidates: VMIs to update. handler_rollout: nodes whose
virt-handler is not updated yet. Both follow the caches. world: the input of a decision. decide, status: pure.
reconciler: reads the caches, writes. The key is the KubeVirt. migration/ carries a migration out; virt-api decides
whether a Pod may be evicted.
"""
