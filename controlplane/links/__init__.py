# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two of our processes say to each other, typed and bounded.

handler: between virt-api and virt-handler. node: between virt-handler and virt-node.
"""
