#!/usr/bin/python
# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubevirt_node_image
short_description: Bring an image to a node, or take it away with its content
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
      - The image, as Pods name it. For O(state=absent) a tag does not matter, all tags and digests of the repository go.
    type: str
    required: true
  state:
    description:
      - Whether the image is there. V(absent) removes its content as well, unless a container or another name still uses it.
      - A container that has ended is waited for, up to 90 seconds. CRI-O removes no image that one uses for longer; that is an error.
    type: str
    choices: [present, absent]
    default: present
  archive:
    description:
      - Path on the node of an OCI archive to import. Without it the node pulls the image from its registry.
    type: path
  digest:
    description:
      - The digest of the image in O(archive); an image with this digest is not imported again, one with another is replaced.
    type: str
  pull:
    description:
      - Whether to ask the registry when the node has an image of this name, to see whether it is still the same.
    type: str
    choices: [missing, always]
    default: missing
  username:
    description:
      - The user at the registry.
    type: str
  password:
    description:
      - The password at the registry. It is typed to containerd's client, or handed to CRI-O's in its environment, so that it is
        in no list of processes and no log.
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

- name: Remove an image, all tags of it, with its content
  virtops.kubevirt.kubevirt_node_image:
    name: localhost/virtops/virt-launcher
    state: absent
"""

RETURN = r"""
digest:
  description: What the name stands for on the node now; empty if check mode cannot know.
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
