# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of guests on this machine: each local connection goes through a stream of the API server.

open_port   opens one stream to a port; the errors say what to do
relay       copies between a local connection and its stream
forward     a local port, each of whose connections has its own stream
task        module kubevirt_port_forward

For a connection plugin, or a module that talks to a program in a guest:

    from ..module_utils._port_forward.forward import Forward

    guests = kinds.operations(kinds.VMI, "default")
    with Forward(api, guests, "database", 5432) as forward:
        connection = socket.create_connection(forward.address)  # 127.0.0.1 and a free port
        ...
        forward.errors  # why connections have failed, e.g. "cannot connect to port 5432 of ...: nothing listens there"

All users of this machine can connect to the local port, with the rights of the user who opened it.
"""
