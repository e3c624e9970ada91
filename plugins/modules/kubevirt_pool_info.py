#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_pool_info
short_description: Read KubeVirt pools of virtual machines
description:
  - Returns VirtualMachinePools of C(pool.kubevirt.io), with how many of their machines are ready.
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
  api_version:
    description:
      - API version of the objects.
    type: str
    default: pool.kubevirt.io/v1beta1
  name:
    description:
      - Name of the pool; all by default.
    type: str
  namespace:
    description:
      - Namespace to look in; all by default.
    type: str
  wait:
    description:
      - Wait until they have the wanted number of machines, all of them ready.
      - With O(name) and O(namespace) also until the object exists.
      - Fails at once if the cluster does not know the kind.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_pool
"""

EXAMPLES = r"""
- name: Read one pool
  virtops.kubevirt.kubevirt_pool_info:
    name: web
    namespace: default

- name: Wait until all its machines are ready
  virtops.kubevirt.kubevirt_pool_info:
    name: web
    namespace: default
    wait: true

- name: Wait until it no longer fails to create machines
  virtops.kubevirt.kubevirt_pool_info:
    name: web
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
  description: Why the wait failed, for the pool or one of its machines.
  returned: failure of a wait
  type: str
  sample: "1 of 3 machines are ready, 3 are there; web-2: its instance is Scheduling (status Starting)"
conditions:
  description: The conditions of the pool.
  returned: failure of a wait
  type: list
  elements: dict
events:
  description: The newest warnings about that machine and its Pod.
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
        argument_spec=info_argspec.pool_info_spec(),
        supports_check_mode=True,
    )
    frame.run(module, info.pools)


if __name__ == "__main__":
    main()
