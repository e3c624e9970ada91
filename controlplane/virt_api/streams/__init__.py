# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of users to a guest: serial console, screen, ports of its network.

serve             authorizes a request, opens the far end, then accepts the client's WebSocket, and watches the session
preconditions     what a stream requires of a VMI
origin            which web pages may open a stream
audit             the log of sessions
handler_streams   the far end at virt-handler: console and screen
guest_ports       the far end at the guest's network: TCP and UDP
"""
