#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_objects
short_description: Apply or remove the Kubernetes objects of the control plane
description:
  - Brings a list of objects about by server-side apply, patches or removes them, and waits by watch until each
    serves or is gone.
  - It is what role P(virtops.kubevirt.control_plane#role) is made of. Use it where a list of manifests has to be
    applied without C(kubectl) and without another collection.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.auth
  - virtops.kubevirt.attributes.actiongroup
options:
  definitions:
    description:
      - The objects, in the order in which they are applied. They are removed in the opposite order.
    type: list
    elements: dict
    required: true
  state:
    description:
      - V(present) applies each object; V(absent) deletes it; V(patched) merges into the objects that exist and
        leaves out those that do not.
    type: str
    choices: [present, absent, patched]
    default: present
  labels:
    description:
      - Labels added to the metadata of every object that is applied.
    type: dict
    default: {}
  only_with_labels:
    description:
      - The labels that an object must carry for O(state=absent) to delete it. What does not carry them all is somebody else's
        under the same name; it is left alone, not waited for, and named in RV(left_alone).
    type: dict
    default: {}
  wait:
    description:
      - Whether to wait until each object serves (definitions established, workloads rolled out, API services
        and the control plane available) or is gone.
    type: bool
    default: false
  wait_timeout:
    description:
      - How many seconds to wait in all.
    type: int
    default: 300
attributes:
  check_mode:
    description: Nothing is stored; the server checks each object as if it were.
    support: full
  diff_mode:
    description: Says what would differ, without the values of Secrets.
    support: full
  idempotent:
    description: A second run with the same definitions changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Have a namespace
  virtops.kubevirt.kubevirt_objects:
    definitions:
      - apiVersion: v1
        kind: Namespace
        metadata:
          name: machines
    labels:
      app.kubernetes.io/managed-by: somebody

- name: Have it no more, unless another one has made it
  virtops.kubevirt.kubevirt_objects:
    state: absent
    definitions:
      - apiVersion: v1
        kind: Namespace
        metadata:
          name: machines
    only_with_labels:
      app.kubernetes.io/managed-by: somebody
"""

RETURN = r"""
changes:
  description: The objects that were changed, kind and name.
  returned: success
  type: list
  elements: str
  sample: ["Namespace machines"]
left_alone:
  description:
    - The objects that were not deleted because they do not carry O(only_with_labels), kind and name; without those that go
      with a Namespace that was.
  returned: success
  type: list
  elements: str
  sample: ["Namespace production"]
not_ready_nodes:
  description: Nodes that are not Ready, so that a DaemonSet was not waited for there. It begins there when they are.
  returned: success
  type: list
  elements: str
  sample: ["worker-3"]
"""

from ..module_utils._client.argspec import auth_argument_spec
from ..module_utils._client.frame import VirtModule, run
from ..module_utils._cluster.objects import run as bring_about


def main() -> None:
    """Run the module."""
    spec = {
        **auth_argument_spec(),
        "definitions": {"type": "list", "elements": "dict", "required": True},
        "state": {"type": "str", "choices": ["present", "absent", "patched"], "default": "present"},
        "labels": {"type": "dict", "default": {}},
        "only_with_labels": {"type": "dict", "default": {}},
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 300},
    }
    run(VirtModule(argument_spec=spec, supports_check_mode=True), bring_about)


if __name__ == "__main__":
    main()
