# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installing and removing the control plane: nothing goes that somebody else made, or that holds data."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_MADE = "plugins/module_utils/_cluster/made.py"
_PLACEMENT = "plugins/module_utils/_cluster/placement.py"
_BY_PLACEMENT = ("tests/unit/plugins/module_utils/_cluster/test_placement.py",)
_TESTS = ("tests/unit/plugins/module_utils/_cluster/test_made.py",)
_HOSTS = "playbooks/tasks/hosts.yml"
_LIMIT = "playbooks/tasks/limit.yml"
_PROOF = "playbooks/tasks/proof.yml"
_STATES = "playbooks/tasks/states.yml"
_BY_HOSTS = ("tests/unit/playbooks/test_hosts.py",)
_BY_ENDS = ("tests/unit/playbooks/test_ends.py",)
_REMOVAL = ("tests/unit/roles/control_plane/test_removal.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_MADE,
        line="    return all(labels.get(name) == value for name, value in MARKS.items())",
        without="    return any(labels.get(name) == value for name, value in MARKS.items())",
        because="A namespace that was handed over, and that no run has taken yet, would be deleted by a removal.",
        tests=_TESTS,
    ),
    Guard(
        file=_MADE,
        line='is_marked(one) and one["metadata"].get("namespace") in places',
        without="is_marked(one)",
        because="What somebody copied with our labels into a namespace of their own would go with the control plane.",
        tests=_TESTS,
    ),
    Guard(
        file=_MADE,
        line="names and key(one) not in names",
        without="key(one) not in names",
        because="Whoever only asks what is there would be told that all of it can go.",
        tests=_TESTS,
    ),
    Guard(
        file=_MADE,
        line='    return obj["kind"] in _PRUNED or',
        without="    return True or",
        because="An upgrade would take definitions, and with them every machine, or Secrets that virt-controller made.",
        tests=_TESTS,
    ),
    Guard(
        file=_MADE,
        line=" and _was_applied_by_us(one)",
        without="",
        because="A role that somebody copied from ours has our labels, and would go with the next upgrade.",
        tests=_TESTS,
    ),
    Guard(
        file="roles/control_plane/tasks/remove.yml",
        line="    that: __control_plane_left.workloads | length == 0\n",
        without="    that: true\n",
        because="A machine that was made during a removal would lose its definition, and its guest whoever ends it.",
        tests=_REMOVAL,
    ),
    Guard(
        file="roles/control_plane/tasks/remove.yml",
        line="    that: __control_plane_staying | length == 0\n",
        without="    that: true\n",
        because="A machine that would not go, of a node that is away, would lose its definition, and its guest run on.",
        tests=_REMOVAL,
    ),
    Guard(
        file=_PLACEMENT,
        line="        ROLE in labels\n        and ",
        without="        ",
        because="Workers would count as control-plane nodes, and the demand for these be met by none.",
        tests=_BY_PLACEMENT,
    ),
    Guard(
        file=_PLACEMENT,
        line="        and all(_is_tolerated(taint, tolerations) for taint in taints)\n",
        without="",
        because="Nodes would be demanded whose taints keep virt-api off, and nothing would start.",
        tests=_BY_PLACEMENT,
    ),
    Guard(
        file=_PLACEMENT,
        line="control_plane_nodes([one for one in nodes if _is_kept(one)], selector",
        without="control_plane_nodes(nodes, selector",
        because="On the only node of a small cluster the last virt-api would go before the machines, and a drain hang.",
        tests=_BY_PLACEMENT,
    ),
    Guard(
        file="playbooks/remove.yml",
        line="hostvars['localhost'].__kubevirt_meant.client | default('hosts_not_looked_at')",
        without="kubevirt_client | default('localhost')",
        because="With a client of the inventory, a removal would take the control plane that this machine reaches.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_HOSTS,
        line="inventory_hostnames', item.1) | length > 0",
        without="inventory_hostnames', item.1) | length >= 0",
        because="Of a list with a mistyped node the others would lose their images, and nobody be told of the one.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_HOSTS,
        line="that: item.value | length <= 1",
        without="that: item.value | length >= 0",
        because="Where hosts are told different clients, a removal would take whichever comes first.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_HOSTS,
        line="__kubevirt_client_names | length == 1",
        without="__kubevirt_client_names | length >= 1",
        because="Several clients would install or remove the control plane at once, each where its kubeconfig leads.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_LIMIT,
        line="__kubevirt_client_names is subset(ansible_play_hosts_all)",
        without="__kubevirt_client_names is subset(__kubevirt_client_names)",
        because="A removal with a limit to nodes would take the images from them and leave the control plane.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_LIMIT,
        line="intersect(ansible_play_hosts_all) | length > 0",
        without="intersect(ansible_play_hosts_all) | length >= 0",
        because="A removal with a limit without nodes would leave the images, a deployment roll out what no node has.",
        tests=_BY_HOSTS,
    ),
    Guard(
        file=_PROOF,
        line="that: __kubevirt_behind | length == 0",
        without="that: __kubevirt_behind | length >= 0",
        because="A removal whose client is unreachable would take the images from under machines that run.",
        tests=_BY_ENDS,
    ),
    Guard(
        file=_HOSTS,
        line="__kubevirt_meant.run | default(0) | int + 1",
        without="__kubevirt_meant.run | default(0) | int * 0",
        because="A node that was there for the playbook before would count as there for this one, and lack its images.",
        tests=_BY_ENDS,
    ),
    Guard(
        file=_HOSTS,
        line="  when: hostvars['localhost'].__kubevirt_meant is defined",
        without="  when: false",
        because="After a deployment that a node has stopped, the next playbook of the same run would begin.",
        tests=_BY_ENDS,
    ),
    Guard(
        file=_HOSTS,
        line="__kubevirt_node_names | intersect(ansible_play_hosts_all) | sort",
        without="__kubevirt_node_names | sort",
        because="A node that is away could not be left out by a limit, and hold up all the others.",
        tests=_BY_ENDS,
    ),
    Guard(
        file=_STATES,
        line="that: item.value == __kubevirt_state",
        without="that: item.value in ['present', 'absent']",
        because="A deployment with an extra variable left from a removal would remove the control plane.",
        tests=_BY_HOSTS,
    ),
)
