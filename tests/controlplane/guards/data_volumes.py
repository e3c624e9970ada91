# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DataVolumes: made once, by their owner alone, and no guest sees a disk before it is full."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_READ = "controlplane/virt_controller/data_volumes.py"
_OF_VM = "controlplane/virt_controller/vm/data_volumes.py"
_WRITES = "controlplane/virt_controller/vm/data_volume_writes.py"
_VM = "controlplane/virt_controller/vm/decide.py"
_VMI = "controlplane/virt_controller/vmi/decide.py"
_STATUS = "controlplane/virt_controller/vmi/status.py"
_OPTIONAL = "controlplane/kube/optional.py"
_VERDICT = "controlplane/api/admission/verdict.py"
_KIND = "controlplane/api/objects/data_volume.py"
_BY_VM = ("tests/controlplane/virt_controller/vm/test_data_volumes.py",)
_BY_WRITES = ("tests/controlplane/virt_controller/vm/test_data_volume_writes.py",)
_BY_VMI = ("tests/controlplane/virt_controller/vmi/test_volumes.py",)
_BY_READ = ("tests/controlplane/virt_controller/test_data_volumes.py",)
_BY_OPTIONAL = ("tests/controlplane/kube/test_optional.py",)
_BY_ADMISSION = ("tests/controlplane/api/admission/validate/test_data_volumes.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_OF_VM,
        line="    if not world.data_volumes.is_complete:\n        return None",
        without="    if False:\n        return None",
        because="What is not seen may be there: nothing is made because a cache is empty.",
        tests=_BY_VM,
    ),
    Guard(
        file=_OF_VM,
        line="controller_of(found.metadata) is None and found.metadata.deletion_timestamp is None:",
        without="controller_of(found.metadata) is None:",
        because="A DataVolume that is going must not be adopted.",
        tests=_BY_VM,
    ),
    Guard(
        file=_OF_VM,
        line="        if controller_of(found.metadata) is None and",
        without="        if not _is_own(world, found) and",
        because="A DataVolume of somebody else's, and its data, would go with this VM.",
        tests=_BY_VM,
    ),
    Guard(
        file=_OF_VM,
        line="found is not None and _is_own(world, found) and found.status.phase in STARTABLE",
        without="found is not None and found.status.phase in STARTABLE",
        because="A machine would start on a disk that belongs to another object.",
        tests=_BY_VM,
    ),
    Guard(
        file=_VM,
        line="    if not data_volumes.is_ready(world):",
        without="    if False:",
        because="A machine would start before its disks are there.",
        tests=_BY_VM,
    ),
    Guard(
        file=_VM,
        line="    if ended.steps:\n        return ended\n",
        without="",
        because="A DataVolume that is refused, by a quota, say, would keep a machine from being stopped.",
        tests=_BY_VM,
    ),
    Guard(
        file=_WRITES,
        line="    await _insist_on_vm(api, vm, is_unchanged=True)\n",
        without="",
        because="A DataVolume would be made for a VM that is going, or from a template that is gone.",
        tests=_BY_WRITES,
    ),
    Guard(
        file=_WRITES,
        line="    await _insist_on_vm(api, world.vm)\n",
        without="",
        because="A DataVolume that a VM which is going adopts goes with it.",
        tests=_BY_WRITES,
    ),
    Guard(
        file=_WRITES,
        line="        resource_version=found.metadata.resource_version,\n",
        without="",
        because="Somebody else may have become its owner since it was seen to have none.",
        tests=_BY_WRITES,
    ),
    Guard(
        file=_VMI,
        line="    if world.unfilled:",
        without="    if False:",
        because="A guest would start on half of an image.",
        tests=_BY_VMI,
    ),
    Guard(
        file=_KIND,
        line="FILLED = frozenset({SUCCEEDED, PENDING_POPULATION})",
        without="FILLED = frozenset({SUCCEEDED, PENDING_POPULATION, WAIT_FOR_FIRST_CONSUMER})",
        because="The launcher Pod would have the claim bound, and CDI would fill it under the guest's eyes.",
        tests=_BY_VMI,
    ),
    Guard(
        file=_READ,
        line="    return _filler(claim) if claim is not None else None",
        without="    return None",
        because="A claim that a DataVolume fills can be named without it, while it is half full.",
        tests=_BY_VMI,
    ),
    Guard(
        file=_READ,
        line="is_served() and cache.synced and not unread",
        without="True",
        because="Absence means nothing before all are read.",
        tests=_BY_READ,
    ),
    Guard(
        file=_STATUS,
        line="    if unfillable is not None and not world.was_begun:",
        without="    if False:",
        because="An instance whose disk will never be there would wait for it for ever.",
        tests=_BY_VMI,
    ),
    Guard(
        file="controlplane/kube/cache.py",
        line="        self.synced = False\n        for key",
        without="        for key",
        because="Absence would mean something while nobody tells of what comes.",
        tests=_BY_OPTIONAL,
    ),
    Guard(
        file="controlplane/kube/watch.py",
        line='        super().start_over()\n        self._list_at = float("-inf")\n',
        without="        super().start_over()\n",
        because="A kind that is served again would be watched from where it was: what there is would not be known.",
        tests=("tests/controlplane/kube/test_watch.py",),
    ),
    Guard(
        file=_OPTIONAL,
        line="        cache.on_synced(self._notice)\n",
        without="",
        because="A machine that was looked at while a watch was refused for a moment would wait for ever.",
        tests=_BY_OPTIONAL,
    ),
    Guard(
        file=_OPTIONAL,
        line="self._definition.position > 0 and not self.is_served",
        without="not self.is_served",
        because="People would be told to install CDI because nobody has asked yet whether it is there.",
        tests=_BY_OPTIONAL,
    ),
    Guard(
        file=_OPTIONAL,
        line="        return self._is_served(self._definition.get(",
        without="        return self._definition.synced and self._is_served(self._definition.get(",
        because="People would be told to install CDI because a watch was refused for a moment.",
        tests=_BY_OPTIONAL,
    ),
    Guard(
        file=_VERDICT,
        line="    if settings.serves_data_volumes or _is_judged(request, obj):",
        without="    if settings.serves_data_volumes is not False or _is_judged(request, obj):",
        because="While it is not known that DataVolumes are served, a machine would be let in that may never run.",
        tests=_BY_ADMISSION,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/volumes.py",
        line="found.status.phase == FAILED:",
        without="found.trouble is not None:",
        because="A run would end for trouble of CDI that passes by itself.",
        tests=_BY_VMI,
    ),
    Guard(
        file=_STATUS,
        line="    if unfillable is not None and not world.was_begun:",
        without="    if unfillable is not None:",
        because="A run whose Pod is only not seen would be over, and its Pod may come up yet.",
        tests=_BY_VMI,
    ),
    Guard(
        file=_READ,
        line='kind == DATA_VOLUME.kind and api_version.partition("/")[0] == DATA_VOLUME.group',
        without="kind == DATA_VOLUME.kind",
        because="A machine would wait for ever for something else that is called a DataVolume.",
        tests=_BY_VMI,
    ),
    Guard(
        file="controlplane/virt_controller/wake.py",
        line=", controller_of(one.metadata), one.metadata.deletion_timestamp is None",
        without=", controller_of(one.metadata)",
        because="Who waits for a DataVolume that goes would wait on when it has gone.",
        tests=_BY_READ,
    ),
)
