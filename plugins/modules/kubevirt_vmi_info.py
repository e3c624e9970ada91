#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_vmi_info
short_description: Read running instances of KubeVirt virtual machines
description:
  - Returns VirtualMachineInstances of C(kubevirt.io), which exist while a guest runs, with node, addresses and conditions.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.wait.fail_fast
  - virtops.kubevirt.read
  - virtops.kubevirt.attributes.info
  - virtops.kubevirt.attributes.actiongroup
options:
  name:
    description:
      - Name of the VirtualMachineInstance; all by default.
    type: str
  namespace:
    description:
      - Namespace to look in; all by default.
    type: str
  wait:
    description:
      - Wait until they are ready.
      - With O(name) and O(namespace) also until the object exists.
      - Fails at once if the cluster does not know the kind.
    type: bool
    default: false
  guest:
    description:
      - Ask the agents of the guests for operating systems, users and file systems.
      - A guest without an agent, or one that does not run, is no failure; RV(guests[].reason) says why.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_vm
"""

EXAMPLES = r"""
- name: Read the node and the addresses of a virtual machine
  virtops.kubevirt.kubevirt_vmi_info:
    name: web
    namespace: default

- name: Read all instances of a node
  virtops.kubevirt.kubevirt_vmi_info:
    label_selectors:
      - kubevirt.io/nodeName=node-1

- name: Wait until the agent of a guest is connected
  virtops.kubevirt.kubevirt_vmi_info:
    name: web
    namespace: default
    wait: true
    wait_condition:
      type: AgentConnected

- name: Read the data of the guest's agent
  virtops.kubevirt.kubevirt_vmi_info:
    name: web
    namespace: default
    guest: true
"""

RETURN = r"""
api_found:
  description: Whether the cluster knows the kind.
  returned: success
  type: bool
  sample: true
resources:
  description: The objects. Secrets in them are not shown.
  returned: success
  type: list
  elements: dict
guests:
  description: The responses of the guests' agents, one entry for each of RV(resources), in their order.
  returned: with O(guest=true)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the instance.
      returned: always
      type: str
    namespace:
      description: Its namespace.
      returned: always
      type: str
    agent:
      description: Whether the agent responded.
      returned: always
      type: bool
    reason:
      description: Why there is no response.
      returned: when the agent did not respond
      type: str
      sample: no guest agent is connected; install and start qemu-guest-agent in the guest
    info:
      description: C(VirtualMachineInstanceGuestAgentInfo) as in the API; host name, operating system, time zone and more.
      returned: when the agent responded
      type: dict
    users:
      description: Logged-in users; entries with C(userName) and C(loginTime).
      returned: when the agent responded
      type: list
      elements: dict
    filesystems:
      description: Its file systems; entries with C(diskName), C(mountPoint), C(fileSystemType), C(usedBytes) and C(totalBytes).
      returned: when the agent responded
      type: list
      elements: dict
reason:
  description: Why the wait failed, the most specific cause of those in the Pod, the instance and the events.
  returned: failure of a wait
  type: str
  sample: "launcher Pod virt-launcher-web-5d0a3c1e-1 finds no node: 0/1 nodes are available: 1 Insufficient memory."
printable_status:
  description: The phase of the instance.
  returned: failure of a wait
  type: str
  sample: Scheduling
conditions:
  description: The conditions of the instance.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about the instance and its Pod.
  returned: failure of a wait
  type: list
  elements: str
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
from ..module_utils._vm.read import info, info_argspec


def main():
    module = frame.VirtModule(
        argument_spec=info_argspec.vmi_info_spec(),
        supports_check_mode=True,
    )
    frame.run(module, info.instances)


if __name__ == "__main__":
    main()
