# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workload updates: running instances get to the deployed launcher image, by migrations or evictions.

instance_view: the fields of an instance that matter here. candidates: instances to update, kept as they change.
rollout: which nodes are not at this control plane yet, kept likewise.
world: what a decision is based on. decide, status: pure. reconciler: caches in, writes out. The key is the KubeVirt.
What becomes of a migration is migration/; whether a Pod may be evicted, virt-api says.
"""
