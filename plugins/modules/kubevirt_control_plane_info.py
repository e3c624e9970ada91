#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_control_plane_info
short_description: Say whose control plane a cluster has
description:
  - Finds out whether a cluster has this collection's control plane, another KubeVirt or none, and which virtual
    machines there are.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes.info
  - virtops.kubevirt.attributes.actiongroup
options:
  namespace:
    description:
      - The namespace that is meant for the control plane, to be told whose it is.
    type: str
"""

EXAMPLES = r"""
- name: Find out what is installed
  virtops.kubevirt.kubevirt_control_plane_info:
  register: found

- name: Say it
  ansible.builtin.debug:
    msg: "{{ found.owner }} {{ found.version }}"
"""

RETURN = r"""
owner:
  description: V(ours) for this collection's control plane, V(other) for another KubeVirt, V(none).
  returned: success
  type: str
  sample: ours
evidence:
  description: What told so; empty for V(none).
  returned: success
  type: str
  sample: CustomResourceDefinition kubevirts.kubevirt.io, managed by virt-operator
version:
  description: The version of this collection's control plane.
  returned: success
  type: str
  sample: 0.1.0
namespace:
  description: The namespace of this collection's control plane.
  returned: success
  type: str
  sample: kubevirt
namespace_owner:
  description:
    - V(ours) if O(namespace) carries the label C(app.kubernetes.io/managed-by=virtops.kubevirt), V(other) if it does not,
      V(none) if there is no such namespace or none was asked about.
  returned: success
  type: str
  sample: none
workloads:
  description: Virtual machines, and instances without one, as namespace/name.
  returned: success
  type: list
  elements: str
  sample: ["default/web"]
workload_objects:
  description: The same, as objects that C(kubevirt_objects) can remove.
  returned: success
  type: list
  elements: dict
node_patches:
  description: Patches that take the control plane's labels and annotations off the nodes.
  returned: success
  type: list
  elements: dict
leftovers:
  description: Objects of the cluster, not of a namespace, that carry the label of this collection's control plane.
  returned: success
  type: list
  elements: str
  sample: ["ClusterRole kubevirt-controller"]
"""

from ..module_utils._client.argspec import auth_argument_spec
from ..module_utils._client.frame import VirtModule, run
from ..module_utils._cluster.inspect import run as inspect


def main() -> None:
    """Run the module."""
    spec = {**auth_argument_spec(), "namespace": {"type": "str"}}
    run(VirtModule(argument_spec=spec, supports_check_mode=True), inspect)


if __name__ == "__main__":
    main()
