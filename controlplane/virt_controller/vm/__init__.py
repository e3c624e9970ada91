# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachine: makes and removes its instance as the run strategy says, and tells how it is.

world: what a decision is based on. decide, requests, start_failure, status, refusal: pure. template, instance: what the
VMI of a VM is made from. reconciler: caches in, writes out.
"""
