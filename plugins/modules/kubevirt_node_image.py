#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_node_image
short_description: Bring an image to a node, or remove it with its content
description:
  - Runs on the node, as a user with access to its container runtime. The role P(virtops.kubevirt.launcher_image#role) uses it.
author:
  - virtops (@virtops)
extends_documentation_fragment:
  - virtops.kubevirt.node_runtime
  - virtops.kubevirt.attributes
options:
  name:
    description:
      - The image, as Pods name it. O(state=absent) ignores the tag, and removes all tags and digests of the repository.
    type: str
    required: true
  state:
    description:
      - Whether the node has the image. V(absent) also removes its content, unless a container or another name still uses it.
      - Waits up to 90 seconds for ended containers that still use the image. CRI-O removes no image in use; after that time it
        is an error.
    type: str
    choices: [present, absent]
    default: present
  archive:
    description:
      - Path on the node of an OCI archive to import. Without it the node pulls the image from its registry.
    type: path
  digest:
    description:
      - The digest of the image in O(archive). An image with this digest is not imported again; another one is replaced.
    type: str
  pull:
    description:
      - Whether to ask the registry for a newer image although the node has one of this name.
    type: str
    choices: [missing, always]
    default: missing
  username:
    description:
      - The user at the registry.
    type: str
  password:
    description:
      - The password at the registry. containerd's client gets it by standard input, CRI-O's by the environment, so no process
        list and no log has it.
    type: str
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Import an image, if the node does not have it
  virtops.kubevirt.kubevirt_node_image:
    name: localhost/virtops/virt-launcher:0.1.0
    archive: /tmp/virt-launcher.tar
    digest: sha256:6c0e9ac9ffb8b1e5f4dc4ed8ea6c5cb0a8a22d2ef1aa5a0d7f2a3f3c5d9d8e11

- name: Pull one from a registry with a password
  virtops.kubevirt.kubevirt_node_image:
    name: registry.example.com/virtops/virt-launcher:0.1.0
    username: nodes
    password: "{{ registry_password }}"

- name: Remove an image, with all its tags and its content
  virtops.kubevirt.kubevirt_node_image:
    name: localhost/virtops/virt-launcher
    state: absent
"""

RETURN = r"""
digest:
  description: The digest of the name on the node; empty if it is unknown in check mode.
  returned: for O(state=present)
  type: str
  sample: sha256:6c0e9ac9ffb8b1e5f4dc4ed8ea6c5cb0a8a22d2ef1aa5a0d7f2a3f3c5d9d8e11
removed:
  description: The names that were removed, or would be.
  returned: for O(state=absent)
  type: list
  elements: str
  sample: ["localhost/virtops/virt-launcher:0.1.0"]
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._node.frame import run
from ..module_utils._node.image import ensure, image_spec


def main() -> None:
    run(AnsibleModule(argument_spec=image_spec(), supports_check_mode=True), ensure)


if __name__ == "__main__":
    main()
