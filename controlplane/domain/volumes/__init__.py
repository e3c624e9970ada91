# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each kind of volume means, one file per kind: for the launcher Pod, for the launch plan, for the domain.

kind: what such a file says. registry: one row per kind, and what everybody else asks. What the launcher makes of the
plan is its own (controlplane.virt_launcher.disks.prepare); it imports nothing of this.
"""
