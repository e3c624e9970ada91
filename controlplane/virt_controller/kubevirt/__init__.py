# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt, the control plane's own object: virt-controller reads its configuration and writes its status.

configuration: the current configuration. status: pure. reconciler: reads the cache, writes the status.
"""
