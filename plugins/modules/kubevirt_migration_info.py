#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_migration_info
short_description: Read migrations of KubeVirt virtual machines
description:
  - Returns VirtualMachineInstanceMigrations of C(kubevirt.io), with their phases. The control plane keeps the newest finished
    ones of each machine.
  - M(virtops.kubevirt.kubevirt_vmi_info) returns the current node of a machine.
author:
  - virtops.kubevirt contributors (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.wait
  - virtops.kubevirt.read
  - virtops.kubevirt.attributes.info
  - virtops.kubevirt.attributes.actiongroup
options:
  name:
    description:
      - Name of the migration; all by default.
    type: str
  namespace:
    description:
      - Namespace to look in; all by default.
    type: str
  vm:
    description:
      - Name of the machine; all by default.
    type: str
  unfinished:
    description:
      - Only unfinished migrations.
    type: bool
    default: false
  wait:
    description:
      - Wait until the selected migrations have succeeded or failed. RV(resources) has them as they are then, without deleted
        ones.
      - With O(name) and O(namespace) also until the object exists.
      - Fails at once if the cluster does not know the kind.
    type: bool
    default: false
seealso:
  - module: virtops.kubevirt.kubevirt_migration
"""

EXAMPLES = r"""
- name: Read the unfinished migrations of all namespaces
  virtops.kubevirt.kubevirt_migration_info:
    unfinished: true

- name: Read the migrations of a machine
  virtops.kubevirt.kubevirt_migration_info:
    vm: web
    namespace: default

- name: Wait until all migrations are over
  virtops.kubevirt.kubevirt_migration_info:
    unfinished: true
    wait: true
    wait_timeout: 1800
"""

RETURN = r"""
api_found:
  description: Whether the cluster knows the kind.
  returned: success
  type: bool
  sample: true
resources:
  description: The objects.
  returned: success
  type: list
  elements: dict
reason:
  description: Why the wait failed.
  returned: failure of a wait
  type: str
  sample: it is Scheduling
phase:
  description: The phase of the migration when the wait failed.
  returned: failure of a wait
  type: str
  sample: Scheduling
phases:
  description: Its phases in their order, each with C(phase) and C(time).
  returned: failure of a wait
  type: list
  elements: dict
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
from ..module_utils._migration import argspec, info


def main():
    module = frame.VirtModule(
        argument_spec=argspec.migration_info_spec(),
        supports_check_mode=True,
    )
    frame.run(module, info.run)


if __name__ == "__main__":
    main()
