# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a guest's bytes get from one node to another. What is done, and when, is decided in vmi/ and incoming/.

sender: the source's part, with tunnel_client, convergence (progress, timeouts) and source_exit (the guest has left).
incoming_tunnels: the target's part, with one tunnel_server for each migration. handshake: the first line of a
connection. peer: certificates of both ends. copy_thread: the event loop, in a thread, in which byte_copy runs.
"""
