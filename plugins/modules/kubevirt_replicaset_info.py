#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_replicaset_info
short_description: Read KubeVirt replica sets of virtual machine instances
description:
  - Returns VirtualMachineInstanceReplicaSets of C(kubevirt.io), with how many of their instances are ready.
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
      - Name of the replica set; all by default.
    type: str
  namespace:
    description:
      - Namespace to look in; all by default.
    type: str
  wait:
    description:
      - Wait until they have the wanted number of instances, all of them ready.
      - With O(name) and O(namespace) also until the object exists.
      - Fails at once if the cluster does not know the kind.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_replicaset
"""

EXAMPLES = r"""
- name: Read one replica set
  virtops.kubevirt.kubevirt_replicaset_info:
    name: workers
    namespace: default

- name: Wait until all its instances are ready
  virtops.kubevirt.kubevirt_replicaset_info:
    name: workers
    namespace: default
    wait: true

- name: Wait until it no longer fails to create instances
  virtops.kubevirt.kubevirt_replicaset_info:
    name: workers
    namespace: default
    wait: true
    wait_condition:
      type: ReplicaFailure
      status: 'False'
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
  description: Why the wait failed, for the set or one of its instances.
  returned: failure of a wait
  type: str
  sample: "1 of 3 instances are ready, 3 are there; workersx2f7k: its instance is Scheduling"
conditions:
  description: The conditions of the replica set.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about that instance and its Pod.
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
        argument_spec=info_argspec.info_spec(),
        supports_check_mode=True,
    )
    frame.run(module, info.replica_sets)


if __name__ == "__main__":
    main()
