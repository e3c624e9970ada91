# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher Pod may use, and what is believed of what it says."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LAUNCH_PLAN = "controlplane/api/launch_plan.py"
_HANDLER_STATUS = "controlplane/virt_handler/vmi/status.py"
_POD_METADATA = "controlplane/api/pod_metadata.py"
_LAUNCHER_POD = "controlplane/virt_controller/vmi/launcher_pod.py"
_DISK_SPACE = "controlplane/virt_controller/vmi/disk_space.py"
_RESOURCES = "controlplane/virt_controller/vmi/resources.py"
_IMAGE = "controlplane/virt_launcher/image.py"
_CONTAINER_DISK = "controlplane/domain/volumes/container_disk.py"
_STORAGE = "controlplane/api/admission/validate/storage.py"
_QEMU_LOG = "controlplane/virt_launcher/qemu_log.py"
_CONSOLE = "controlplane/virt_launcher/console.py"
_FOLLOW = "controlplane/virt_launcher/follow.py"
_DIRECTORY_WATCH = "controlplane/virt_launcher/directory_watch.py"
_BY_LAUNCH_PLAN = ("tests/controlplane/api/test_launch_plan.py",)
_BY_HANDLER_STATUS = ("tests/controlplane/virt_handler/vmi/test_status.py",)
_BY_QEMU_LOG = ("tests/controlplane/virt_launcher/test_qemu_log.py",)
_BY_CONSOLE = ("tests/controlplane/virt_launcher/test_console.py",)
_BY_FOLLOW = ("tests/controlplane/virt_launcher/test_follow.py",)
_GUEST = "controlplane/virt_launcher/guest.py"
_BY_GUEST = ("tests/controlplane/virt_launcher/test_guest.py",)
_BY_LAUNCH = ("tests/controlplane/virt_controller/vmi/test_launch.py",)
_BY_CORPUS = ("tests/controlplane/api/admission",)
_BY_POD_METADATA = ("tests/controlplane/api/test_pod_metadata.py",)
_BY_LAUNCHER_POD = ("tests/controlplane/virt_controller/vmi/test_launcher_pod.py",)
_BY_DISK_SPACE = ("tests/controlplane/virt_controller/vmi/test_disk_space.py",)
_BY_RESOURCES = ("tests/controlplane/virt_controller/vmi/test_resources.py",)
_BY_IMAGE = ("tests/controlplane/virt_launcher/test_image.py",)
_RESTART = "controlplane/virt_launcher/restart.py"
_BY_RESTART = ("tests/controlplane/virt_launcher/test_restart.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_GUEST,
        line="            self._cause = cause_of_end((event,)) or self._cause\n",
        without="",
        because="Where the launcher's last words are all there is, a panic would be a QEMU that ended unexpectedly.",
        tests=_BY_GUEST,
    ),
    Guard(
        file="controlplane/virt_launcher/capabilities.py",
        line=" if target.name == _EMULATION else said",
        without="",
        because="With KVM a guest's CPU is compared with the host's feature by feature; libvirt must see each.",
        tests=("tests/controlplane/virt_launcher/test_capabilities.py",),
    ),
    Guard(
        file=_FOLLOW,
        line="copied / BYTES_PER_SECOND, REST_FACTOR * (used() - before)",
        without="copied / BYTES_PER_SECOND",
        because="A guest that writes what is costly to show takes its launcher's processor.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_FOLLOW,
        line="            if is_told and not (copied or trimmed or console.is_unfinished):",
        without="            if is_told and not (copied or trimmed):",
        because="A prompt, or what a stopped reader has not taken, stays away until the guest writes again.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_FOLLOW,
        line="            if is_told and not (copied or trimmed or console.is_unfinished):\n                await",
        without="            if False:\n                await",
        because="A hundred idle machines whose logs are looked at though nobody writes wake their node without end.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_DIRECTORY_WATCH,
        line="SIGNAL = signal.SIGURG",
        without="SIGNAL = signal.SIGIO",
        because="A word that comes when nobody listens any more ends the launcher, and its guest with it.",
        tests=("tests/controlplane/virt_launcher/test_directory_watch.py",),
    ),
    Guard(
        file=_CONSOLE,
        line="            self._skip_backlog(FINISH_BYTES)\n",
        without="            pass\n",
        because="A guest that floods its console keeps its launcher from ending, and hides its last words.",
        tests=_BY_CONSOLE,
    ),
    Guard(
        file=_LAUNCH_PLAN,
        line="    except RecursionError as error:",
        without="    except UnicodeError as error:",
        because="A report nested deeply must be refused like any other, not end the session that reads it.",
        tests=_BY_LAUNCH_PLAN,
    ),
    Guard(
        file=_HANDLER_STATUS,
        line='status="False", reason=word(reason), message=bounded(message)',
        without='status="False", reason=reason, message=message',
        because="What a tenant's side says must not fill a status, nor reach a terminal as it is.",
        tests=_BY_HANDLER_STATUS,
    ),
    Guard(
        file=_GUEST,
        line="            if self._pulse.seconds_to_ping() <= 0:\n                await",
        without="            if False:\n                await",
        because="Events that put the question off have their libvirtd killed for its silence.",
        tests=_BY_GUEST,
    ),
    Guard(
        file=_QEMU_LOG,
        line="        if status.st_blocks * 512 <= LIMIT_BYTES:",
        without="        if status.st_blocks >= 0:",
        because="A guest that makes QEMU complain must not fill the node's disk.",
        tests=_BY_QEMU_LOG,
    ),
    Guard(
        file=_QEMU_LOG,
        line="        free_range(descriptor, 0, size - KEPT_BYTES)",
        without="        free_range(descriptor, 0, size)",
        because="Why a start failed is read from the newest messages.",
        tests=_BY_QEMU_LOG,
    ),
    Guard(
        file=_CONSOLE,
        line="        if self._at - self._freed >= _FREED_BYTES:",
        without="        if self._at < 0:",
        because="A guest that prints must not fill the node's disk.",
        tests=_BY_CONSOLE,
    ),
    Guard(
        file=_CONSOLE,
        line="        if behind > 0:",
        without="        if behind < 0:",
        because="A guest that prints faster than is copied must not fill the node's disk.",
        tests=_BY_CONSOLE,
    ),
    Guard(
        file=_FOLLOW,
        line="            self._pause = min(self._pause * FACTOR, LAST_SECONDS)",
        without="            self._pause = FIRST_SECONDS",
        because="A hundred idle machines must not wake their node without end.",
        tests=_BY_FOLLOW,
    ),
    Guard(
        file=_LAUNCH_PLAN,
        line="    if (size := len(text.encode())) > PLAN_LIMIT_BYTES:",
        without="    if (size := len(text.encode())) < 0:",
        because="A Pod whose annotations are too long is refused, and nothing says what to do.",
        tests=_BY_LAUNCH,
    ),
    Guard(
        file=_STORAGE,
        line="    if size > TEXT_LIMIT_BYTES:",
        without="    if size < 0:",
        because="What is let in must fit into the plan, or its machine never starts.",
        tests=_BY_CORPUS,
    ),
    Guard(
        file=_POD_METADATA,
        line="    return key in ANNOTATIONS or _domain(key) in ANNOTATION_DOMAINS",
        without="    return True",
        because="An annotation switches things on with virt-controller's rights.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_POD_METADATA,
        line="        return key in LABELS_OF_KUBEVIRT\n",
        without="        return True\n",
        because="What our labels say of a Pod is believed by every component.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_POD_METADATA,
        line="    return not (_is_below(domain, _KUBERNETES + DOMAINS_OF_CONTROLLERS) or _is_of_controllers(key))",
        without="    return not (_is_below(domain, DOMAINS_OF_CONTROLLERS) or _is_of_controllers(key))",
        because="Labels of Kubernetes' own domains are taken for facts by its controllers.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_POD_METADATA,
        line="_KUBERNETES + DOMAINS_OF_CONTROLLERS)",
        without="_KUBERNETES)",
        because="A controller would give the launcher a token, take it for its own or end it, at a tenant's word.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_POD_METADATA,
        line=" or _is_of_controllers(key))",
        without=")",
        because="A launcher would carry what workloads know their Pods by, and runtimes whose they are.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_POD_METADATA,
        line="    if size > ANNOTATIONS_LIMIT_BYTES:",
        without="    if size < 0:",
        because="Annotations must leave room for the plan, or the machine never starts.",
        tests=_BY_POD_METADATA,
    ),
    Guard(
        file=_LAUNCHER_POD,
        line="            **passed_annotations(meta.annotations),",
        without="            **meta.annotations,",
        because="An annotation switches things on with virt-controller's rights.",
        tests=_BY_LAUNCHER_POD,
    ),
    Guard(
        file=_LAUNCHER_POD,
        line='"emptyDir": {"sizeLimit": str(launch.run_bytes)}',
        without='"emptyDir": {}',
        because="What is broken or hostile around a guest must not fill its node's disk.",
        tests=_BY_DISK_SPACE,
    ),
    Guard(
        file=_DISK_SPACE,
        line="    run = disks + disks // METADATA_RATIO + SHARED_BYTES",
        without="    run = disks",
        because="A guest that fills its disks must not be evicted for it.",
        tests=_BY_DISK_SPACE,
    ),
    Guard(
        file=_CONTAINER_DISK,
        line="    return largest\n",
        without="    return 0\n",
        because="A guest that fills its disks must not be evicted for it.",
        tests=_BY_DISK_SPACE,
    ),
    Guard(
        file=_IMAGE,
        line="    if image.virtual_bytes > limit_bytes:",
        without="    if image.virtual_bytes < 0:",
        because="An image decides how much a guest may write on its node; somebody must say how much that may be.",
        tests=_BY_IMAGE,
    ),
    Guard(
        file=_RESOURCES,
        line="    return _with_margin(domain, max(guest_bytes(domain), _memory_request(domain)))",
        without="    return _with_margin(domain, _memory_request(domain))",
        because="A guest that is promised more memory than is requested must not be killed for using it.",
        tests=_BY_RESOURCES,
    ),
    Guard(
        file=_RESOURCES,
        line='    limits = {"memory": str(most + overhead), "ephemeral-storage": str(space.pod)}',
        without='    limits = {"ephemeral-storage": str(space.pod)}',
        because="A QEMU that has gone wrong must not take its node's memory.",
        tests=_BY_RESOURCES,
    ),
    Guard(
        file=_RESTART,
        line="    pulse.begin()\n",
        without="",
        because="A new libvirtd would be killed for the silence of the one before it, and the next for its own.",
        tests=_BY_RESTART,
    ),
    Guard(
        file=_RESTART,
        line="            process = None\n",
        without="            raise\n",
        because="A node that is short of processes for a moment would end its guests.",
        tests=_BY_RESTART,
    ),
    Guard(
        file="controlplane/virt_launcher/prepare.py",
        line="    if process.returncode:\n",
        without="    if process.returncode > 0:\n",
        because="A guest would be started on half an overlay.",
        tests=("tests/controlplane/virt_launcher/test_prepare.py",),
    ),
    Guard(
        file="controlplane/virt_launcher/supervise.py",
        line="    for task in tasks:\n        if task in done:",
        without="    for task in reversed(tasks):\n        if task in done:",
        because="A guest that has shut down in time would be said to have been ended.",
        tests=("tests/controlplane/virt_launcher/test_supervise.py",),
    ),
    Guard(
        file="controlplane/virt_launcher/libvirtd.py",
        line="        env=environment,\n",
        without="        env={**os.environ, **environment},\n",
        because="A namespace's webhook would have code of its own loaded into libvirtd and QEMU.",
        tests=("tests/controlplane/virt_launcher/test_libvirtd.py",),
    ),
    Guard(
        file="controlplane/virt_launcher/guest.py",
        line="            self._cause = cause_of_end(happened) or self._cause\n",
        without="",
        because="A guest that panicked would end for no reason, when its end was seen at an event before that.",
        tests=("tests/controlplane/virt_launcher/test_guest.py",),
    ),
)
