# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol between virt-handler and virt-node on a node, and its connection.

messages.py           all requests and responses
node_state.py         the node's newest state, at both ends
channel.py            packets with descriptors
descriptor_closer.py  closes a peer's descriptors without blocking

virt-node is root and has no token; virt-handler has the token and is not root. Neither trusts the other: a message that
does not decode, is too long or brings unexpected descriptors ends the connection.
"""
