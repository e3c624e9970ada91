# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each published weakness of docs/security.md, planted: the very test that its row names goes red.

What is not in here needs more than Python, and shows both sides by itself: what a launcher plants is refused where the
owner of files matters (root), what a captured node writes is replayed on an API server (component).
"""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_T = "tests/controlplane/"
_ROLE = "roles/control_plane/templates/"
_POD = "controlplane/virt_controller/vmi/launcher_pod.py"
_BOUNDS = "controlplane/api/schema/bounds.py"
_FIELDS = "controlplane/api/admission/fields.py"
_BY_RIGHTS = (f"{_T}test_rights.py::test_a_pod_of_the_control_plane_may_do_what_is_listed_and_nothing_else",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=f"{_ROLE}rbac-controller.yaml.j2",
        line="    resources: [pods]\n    verbs: [get, list, watch, create, patch, delete]\n",
        without="    resources: [pods, secrets]\n    verbs: [get, list, watch, create, patch, delete]\n",
        because="CVE-2020-1701: a component that reads Secrets hands anybody the one that they name.",
        tests=(f"{_T}test_advisories.py::test_a_users_secret_is_read_by_nobody_of_ours",),
    ),
    Guard(
        file=_POD,
        line='        "enableServiceLinks": False,\n',
        without='        "enableServiceLinks": False,\n        "hostPID": True,\n',
        because="CVE-2020-14316: what a machine has of its host, its guest has.",
        tests=(f"{_T}test_advisories.py::test_a_machine_names_nothing_of_its_host",),
    ),
    Guard(
        file=_BOUNDS,
        line='        pattern=r"(/(\\.{0,2}[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]*|\\.{3}[A-Za-z0-9_.+@-]*))+",\n',
        without='        pattern=r"[^\\0]*",\n',
        because="CVE-2022-1798: a path in an image that leads out of it.",
        tests=(f"{_T}test_advisories.py::test_a_path_in_an_image_stays_in_the_image",),
    ),
    Guard(
        file="controlplane/virt_launcher/image.py",
        line="        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC |",
        without="        flags = os.O_RDONLY | os.O_CLOEXEC |",
        because="CVE-2022-1798, CVE-2025-64433: a disk that is a link to what its tenant must not read.",
        tests=(f"{_T}virt_launcher/test_image.py::test_an_image_that_cannot_be_trusted_is_refused",),
    ),
    Guard(
        file=_FIELDS,
        line="        elif not _asks_for_nothing(kind, name, one):\n",
        without='        elif name != "downwardMetrics" and not _asks_for_nothing(kind, name, one):\n',
        because="CVE-2024-31420: a channel by which a guest talks to the daemon of its node.",
        tests=(f"{_T}test_what_guests_say.py::test_another_channel_is_refused_by_name",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/registry.py",
        line='            except Exception:\n                log.exception("bug in a launcher',
        without='            except KeyboardInterrupt:\n                log.exception("bug in a launcher',
        because="CVE-2024-31420: a bug that one guest finds ends the daemon of all.",
        tests=(
            f"{_T}virt_handler/test_story_hostile.py::test_a_bug_that_one_launcher_meets_costs_its_own_contact_and_no_other",
        ),
    ),
    Guard(
        file=f"{_ROLE}rbac-handler.yaml.j2",
        line="    resources: [nodes]\n    verbs: [get]\n",
        without="    resources: [nodes]\n    verbs: [get, impersonate]\n",
        because="CVE-2024-33394: a token by which its holder becomes somebody else.",
        tests=(f"{_T}test_advisories.py::test_no_account_of_ours_can_become_another",),
    ),
    Guard(
        file=f"{_ROLE}rbac-handler.yaml.j2",
        line="    resources: [nodes/status]\n",
        without="    resources: [nodes, nodes/status]\n",
        because="A captured node says that an administrator wrote a taint, whose next apply takes it off.",
        tests=(f"{_T}test_advisories.py::test_nobody_of_ours_can_say_who_wrote_what_of_a_node",),
    ),
    Guard(
        file=f"{_ROLE}rbac-controller.yaml.j2",
        line="    resources: [nodes/status]\n",
        without="    resources: [nodes, nodes/status]\n",
        because="A captured virt-controller has an administrator's own apply take taints off, of every node.",
        tests=(f"{_T}test_advisories.py::test_nobody_of_ours_can_say_who_wrote_what_of_a_node",),
    ),
    Guard(
        file=_POD,
        line='        "automountServiceAccountToken": False,\n',
        without='        "automountServiceAccountToken": True,\n',
        because="CVE-2024-33394: a token beside a guest.",
        tests=(f"{_T}test_advisories.py::test_a_launcher_has_no_token_and_no_right_of_root",),
    ),
    Guard(
        file=_BOUNDS,
        line=", pattern=SUBDOMAIN, max_length=253),\n",
        without=", max_length=253),\n",
        because="CVE-2024-1725: a tenant's word for a thing of another namespace, or of a path.",
        tests=(f"{_T}test_advisories.py::test_what_a_tenant_names_is_looked_up_in_its_namespace",),
    ),
    Guard(
        file="controlplane/domain/observed.py",
        line='.get("machine", "")[:_WORD_LIMIT],',
        without='.get("machine", ""),',
        because="CVE-2025-14525: a status that outgrows its object by what a launcher says.",
        tests=(f"{_T}test_what_guests_say.py::test_what_a_launcher_can_put_into_a_status_has_an_end",),
    ),
    Guard(
        file="controlplane/virt_api/identity.py",
        line="    if name not in proxy.allowed_names:\n",
        without="    if False:\n",
        because="CVE-2025-64432: whoever has a certificate of that CA speaks for every user.",
        tests=(f"{_T}virt_api/test_identity.py::test_the_certificate_must_be_right",),
    ),
    Guard(
        file="controlplane/virt_api/identity.py",
        line="    if not proxy.allowed_names:\n",
        without="    if not proxy.allowed_names:\n        return _user(proxy, headers)\n",
        because="CVE-2025-64432: an empty list, taken for everybody.",
        tests=(f"{_T}virt_api/test_identity.py::test_where_nobody_may_speak_for_users_nobody_does",),
    ),
    Guard(
        file="controlplane/kube/certificates.py",
        line="        .add_extension(x509.ExtendedKeyUsage(_USAGES[subject.usage]), critical=False)\n",
        without="        .add_extension(x509.ExtendedKeyUsage([_SERVER, _CLIENT]), critical=False)\n",
        because="CVE-2025-64434: a server's pair, taken for a client's.",
        tests=(f"{_T}virt_controller/certificates/test_roles.py::test_a_server_takes_clients_pairs_only",),
    ),
    Guard(
        file=f"{_ROLE}rbac-handler.yaml.j2",
        line="    resources: [leases]\n    verbs: [create, patch]\n",
        without=(
            "    resources: [leases]\n    verbs: [create, patch]\n"
            '  - apiGroups: [""]\n    resources: [secrets]\n'
            "    resourceNames: [kubevirt-virt-api-certs]\n    verbs: [get, list, watch]\n"
        ),
        because="CVE-2025-64434: a captured node that has another component's key.",
        tests=(f"{_T}virt_api/test_manifests.py::test_a_pair_is_read_by_the_one_account_that_uses_it_and_by_no_other",),
    ),
    Guard(
        file="controlplane/api/objects/pod.py",
        line="        return None if owner is None else Key(self.metadata.namespace, owner.name)\n",
        without="        return Key(self.metadata.namespace, self.metadata.name if owner is None else owner.name)\n",
        because="CVE-2025-64435: a Pod that is a machine's by what it says of itself.",
        tests=(f"{_T}test_advisories.py::test_a_pod_with_the_right_labels_is_nobodys_launcher",),
    ),
    Guard(
        file="controlplane/virt_node/launcher_process.py",
        line="        if not is_in_pod(_read_cgroup(proc, pid), pod_uid):\n",
        without="        if False:\n",
        because="CVE-2025-64437: a process of another Pod, or of the node, taken for the launcher.",
        tests=(f"{_T}virt_node/test_launcher_process.py::test_what_is_not_the_pods_own_is_refused",),
    ),
    Guard(
        file="controlplane/virt_api/routes.py",
        line="VERBS[method], GROUP, version, resource, row.path, namespace, name",
        without='VERBS[method], GROUP, version, resource, row.path.split("/")[0], namespace, name',
        because="CVE-2026-6383: the right to one part, taken for the right to another.",
        tests=(f"{_T}test_advisories.py::test_who_may_do_a_part_is_asked_about_that_part",),
    ),
    Guard(
        file="controlplane/virt_node/launcher_dir.py",
        line="            return os.open(proc_path(leaf), _READ)\n",
        without="            return os.open(name, _READ)\n",
        because="CVE-2026-7374: what was proven, and what is used, by one name.",
        tests=(f"{_T}test_opened_by_name.py::test_what_is_opened_by_name_is_nobody_elses",),
    ),
    Guard(
        file="controlplane/health.py",
        line='    async def _healthz(self) -> web.Response:\n        return web.Response(text="ok\\n")\n',
        without='    async def _healthz(self) -> web.Response:\n        return web.FileResponse("/run/disk.img")\n',
        because="CVE-2026-9804: a directory that is served, with whatever its links lead to.",
        tests=(f"{_T}test_opened_by_name.py::test_nothing_serves_files",),
    ),
    Guard(
        file="controlplane/virt_node/launcher_dir.py",
        line="_LEAF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC\n",
        without="_LEAF = os.O_PATH | os.O_CLOEXEC\n",
        because="CVE-2026-13201: a link in the place of the last component.",
        tests=(f"{_T}test_opened_by_name.py::test_below_a_descriptor_no_link_is_followed",),
    ),
    Guard(
        file="controlplane/node_link/messages.py",
        line="    channel: MigrationChannel\n\n\nclass OpenReport(",
        without='    channel: MigrationChannel\n    path: str = ""\n\n\nclass OpenReport(',
        because="CVE-2026-13208: a request that says itself what it is about.",
        tests=(f"{_T}node_link/test_messages.py::test_a_request_names_a_pod_by_its_uid_and_nothing_else",),
    ),
    Guard(
        file="controlplane/virt_handler/report_file.py",
        line="            data = file.read(REPORT_LIMIT_BYTES + 1)\n",
        without="            data = file.read()\n",
        because="CVE-2026-13322: a file without an end.",
        tests=(f"{_T}test_opened_by_name.py::test_nothing_is_read_without_a_bound",),
    ),
    Guard(
        file="controlplane/domain/model/console.py",
        line='AGENT_CHANNEL = "org.qemu.guest_agent.0"\n',
        without='AGENT_CHANNEL = "org.github.vhostmd.1"\n',
        because="CVE-2026-13322: a channel on which somebody of ours listens.",
        tests=(f"{_T}test_what_guests_say.py::test_the_only_channel_of_a_guest_is_its_agents",),
    ),
    Guard(
        file=f"{_ROLE}virt-handler.yaml.j2",
        line="      serviceAccountName: kubevirt-handler\n",
        without="      serviceAccountName: kubevirt-handler\n      hostPID: true\n",
        because="What speaks to launchers and has the token sees, and can open, every process of its node.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-handler.yaml.j2",
        line="            capabilities: {drop: [ALL]}\n",
        without="            capabilities: {drop: [NET_RAW]}\n",
        because="What speaks to launchers has capabilities that it has no use for.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-handler.yaml.j2",
        line="        seccompProfile: {type: RuntimeDefault}\n",
        without="",
        because="What speaks to launchers has every system call of the kernel.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-handler.yaml.j2",
        line="        runAsUser: {{ __control_plane_handler_uid }}\n",
        without="        runAsUser: 107\n",
        because="It would be who launchers are: what is theirs would be its own, and the other way round.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-handler.yaml.j2",
        line="        - name: node\n          hostPath: {path: /run/virtops/node, type: DirectoryOrCreate}\n",
        without="        - name: node\n          hostPath: {path: /run/virtops, type: DirectoryOrCreate}\n",
        because="What speaks to launchers sees more of its node than the socket of virt-node.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-node.yaml.j2",
        line="automountServiceAccountToken: false\n",
        without="automountServiceAccountToken: true\n",
        because="A token beside what is root on the node.",
        tests=_BY_RIGHTS,
    ),
    Guard(
        file=f"{_ROLE}virt-node.yaml.j2",
        line="            - {name: capabilities, mountPath: /capabilities}\n",
        without="            - {name: pods, mountPath: /capabilities}\n",
        because="What asks QEMU once what it can do has every Pod of the node as well.",
        tests=_BY_RIGHTS,
    ),
)
