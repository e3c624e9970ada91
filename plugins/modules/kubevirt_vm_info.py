#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_vm_info
short_description: Read KubeVirt virtual machines
description:
  - Returns VirtualMachines of C(kubevirt.io), running or not.
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
      - Name of the VirtualMachine; all by default.
    type: str
  namespace:
    description:
      - Namespace to look in; all by default.
    type: str
  running:
    description:
      - What to wait for, with O(wait=true).
    type: bool
  wait:
    description:
      - Wait until they are running and ready; with O(running=false) until they have stopped.
      - With O(wait_condition) and O(running), wait for both. The condition is that of the instance, or of the VirtualMachine if
        there is no instance.
      - With O(name) and O(namespace) also until the object exists.
      - Fails at once if the cluster does not know the kind.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_vm
"""

EXAMPLES = r"""
- name: Read one virtual machine
  virtops.kubevirt.kubevirt_vm_info:
    name: web
    namespace: default

- name: Wait until all virtual machines of an application run
  virtops.kubevirt.kubevirt_vm_info:
    namespace: default
    label_selectors:
      - app=web
    running: true
    wait: true

- name: Wait until the agent of a virtual machine's guest is connected
  virtops.kubevirt.kubevirt_vm_info:
    name: web
    namespace: default
    wait: true
    wait_condition:
      type: AgentConnected
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
reason:
  description: Why the wait failed, the most specific cause of those in the Pod, the instance and the events.
  returned: failure of a wait
  type: str
  sample: "launcher Pod virt-launcher-web-5d0a3c1e-1 finds no node: 0/1 nodes are available: 1 Insufficient memory."
printable_status:
  description: The VirtualMachine's status in one word.
  returned: failure of a wait
  type: str
  sample: ErrorUnschedulable
conditions:
  description: The conditions of the VirtualMachine.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about the VirtualMachine, its instance and its Pod.
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
        argument_spec={**info_argspec.info_spec(), "running": {"type": "bool"}},
        supports_check_mode=True,
    )
    frame.run(module, info.virtual_machines)


if __name__ == "__main__":
    main()
