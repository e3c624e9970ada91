#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_port_forward
short_description: Forward a local port to a port of a KubeVirt virtual machine
description:
  - Listens on C(127.0.0.1) of the host that runs the task, and connects each client to a TCP port of the guest, through the API
    server. Needs no Service, and no network from that host to the guest. Like C(virtctl port-forward).
  - Waits until the guest listens, and only then accepts connections. So C(ansible.builtin.wait_for) on O(local_port) waits for
    the guest.
  - The port is forwarded as long as the task runs. Run the task with C(async) and C(poll=0), and the tasks that use the port
    after it. It ends by itself when nobody has used the port for O(idle_timeout), and after O(lifetime) at the latest.
  - All users of the host that runs the task can connect to the local port, with the rights of the task's user.
  - When the guest stops or moves to another node, its open connections are cut within 10 seconds. A local client sees a reset, not
    a regular end, and the result has the reason in RV(errors). A client that connects again reaches the guest where it runs then.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes
  - virtops.kubevirt.attributes.actiongroup
attributes:
  check_mode:
    support: partial
    details:
      - Forwards nothing, and asks nothing of the cluster.
  diff_mode:
    support: N/A
    details:
      - This module changes nothing.
  idempotent:
    support: full
options:
  name:
    description:
      - Name of the instance, which is that of its VirtualMachine.
    type: str
    required: true
  namespace:
    description:
      - Its namespace.
    type: str
    required: true
  port:
    description:
      - TCP port in the guest. A program has to listen there at the address of the guest's interface, not on C(127.0.0.1) alone.
    type: int
    required: true
  local_port:
    description:
      - Port on C(127.0.0.1) of the host that runs the task. The default is the number of O(port).
    type: int
  timeout:
    description:
      - Seconds to wait until the guest listens, because the machine or the program starts. What does not change by itself is not
        waited for, such as a machine that is stopped, paused or has no network.
    type: int
    default: 120
  lifetime:
    description:
      - Seconds after which the task ends, also while connections are open. Give C(async) of the task more than O(timeout) and
        O(lifetime) together.
    type: int
    default: 600
  idle_timeout:
    description:
      - Seconds without an open connection after which the task ends.
    type: int
    default: 60
notes:
  - A WebSocket cannot carry that a client only stops sending. What the guest sends afterwards is delivered, until it sends
    nothing for 10 seconds.
seealso:
  - module: virtops.kubevirt.kubevirt_service
    description: Makes ports of machines reachable for longer, and for others.
  - module: virtops.kubevirt.kubevirt_console
"""

EXAMPLES = r"""
- name: Forward a port of the database in the background
  virtops.kubevirt.kubevirt_port_forward:
    name: database
    namespace: default
    port: 5432
    local_port: 15432
    lifetime: 600
  async: 800
  poll: 0
  register: forward

# In check mode there is no job.
- name: Use it, and show why the forward has failed if it has
  when: not ansible_check_mode
  block:
    - name: Wait until the database listens
      ansible.builtin.wait_for:
        host: 127.0.0.1
        port: 15432
        timeout: 120

    - name: Use it
      community.postgresql.postgresql_query:
        login_host: 127.0.0.1
        login_port: 15432
        login_user: app
        login_password: "{{ database_password }}"
        query: SELECT 1
  always:
    - name: Fail if the forward has failed, or connections were cut
      ansible.builtin.async_status:
        jid: "{{ forward.ansible_job_id }}"
      register: ended
      until: ended is finished
      retries: 30
      delay: 5
"""

RETURN = r"""
local_port:
  description: The port on C(127.0.0.1).
  returned: success, and failure of a connection
  type: int
  sample: 15432
connections:
  description: How many connections were accepted.
  returned: success, and failure of a connection
  type: int
  sample: 1
bytes_to_guest:
  description: Bytes that clients have sent.
  returned: success, and failure of a connection
  type: int
bytes_from_guest:
  description: Bytes that the guest has sent.
  returned: success, and failure of a connection
  type: int
ended_by:
  description: The option that ended the task, V(idle_timeout) or V(lifetime).
  returned: success, and failure of a connection
  type: str
  sample: idle_timeout
errors:
  description:
    - Why connections have failed, each text once, the newest last, at most ten. The task fails if the newest connection has
      failed.
  returned: success, and failure of a connection
  type: list
  elements: str
  sample: []
causes:
  description: Problems that the API server reports, by field.
  returned: when the API server refuses
  type: list
  elements: dict
status:
  description: The HTTP status of the API server's refusal.
  returned: when the API server refuses
  type: int
  sample: 403
server_reason:
  description: The API server's reason for the refusal; may be empty.
  returned: when the API server refuses
  type: str
  sample: Forbidden
"""

from ..module_utils._client import frame
from ..module_utils._port_forward import task


def main():
    module = frame.VirtModule(argument_spec=task.argument_spec(), supports_check_mode=True)
    frame.run(module, task.run)


if __name__ == "__main__":
    main()
