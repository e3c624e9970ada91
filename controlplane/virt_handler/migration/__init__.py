# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a guest's bytes get from one node to another. What is to be done, and when, is decided in vmi/ and incoming/.

peer: who the other virt-handler is. binding: which migration a connection is of. lane: the event loop beside this
process's, in which bytes are copied (pump). entrance: what a target listens with. passage: what a source opens. doors,
sending: both, as the reconcilers need them.
"""
