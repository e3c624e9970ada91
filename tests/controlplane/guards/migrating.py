# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a migration from being asked for by who may not, twice, or of what cannot move."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_KIND = "controlplane/api/admission/kinds/migration.py"
_BY_KIND = ("tests/controlplane/api/admission/kinds/test_migration.py",)
_FIT = "controlplane/virt_api/migratable.py"
_BY_FIT = ("tests/controlplane/virt_api/test_migratable.py",)
_HOOK = "controlplane/virt_api/migrations.py"
_BY_HOOK = ("tests/controlplane/virt_api/test_migrations.py",)
_MIGRATE = "controlplane/virt_api/migrate.py"
_BY_MIGRATE = ("tests/controlplane/virt_api/test_migrate.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/vmi/status.py",
        line=" or wait_for_word(world) > 0:\n",
        without=":\n",
        because="A launcher ends with its QEMU: before its virt-handler has said so, a guest that left would be lost.",
        tests=("tests/controlplane/virt_controller/migration/test_reconciler.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line="    return replace(plan, look_again_in=min(left, plan.look_again_in or left)) if left > 0 else plan\n",
        without="    return plan\n",
        because="Nobody would look when the time is over: a dead machine would be said to run.",
        tests=("tests/controlplane/virt_controller/migration/test_reconciler.py",),
    ),
    Guard(
        file=_KIND,
        line="    if spec.priority is not None:\n",
        without="    if False:\n",
        because="Whoever may migrate at all would be before everybody's drains.",
        tests=_BY_KIND,
    ),
    Guard(
        file=_KIND,
        line="    if old is not None and given not in (None, old):\n",
        without="    if False:\n",
        because="A migration under way could be hidden from who asks for another of the same instance.",
        tests=_BY_KIND,
    ),
    Guard(
        file=_KIND,
        line="    finalizer=names.MIGRATION_FINALIZER,\n",
        without="",
        because="A migration could be made to vanish in the middle, and nobody would end its target.",
        tests=_BY_KIND,
    ),
    Guard(
        file="controlplane/api/admission/defaults.py",
        line="[names.VMI_NAME] = vmi_id(name)\n",
        without="[names.VMI_NAME] = name\n",
        because="What has a long name could never be migrated: no label is that long.",
        tests=_BY_KIND,
    ),
    Guard(
        file=_FIT,
        line="    if is_final(vmi.status.phase):\n",
        without="    if False:\n",
        because="A run that is over would be given a target.",
        tests=_BY_FIT,
    ),
    Guard(
        file=_FIT,
        line='    if said is not None and said.status == "False":\n',
        without="    if said is not None and not said:\n",
        because="A guest whose disk stays behind would be sent away.",
        tests=_BY_FIT,
    ),
    Guard(
        file=_FIT,
        line="        if one.spec.vmi_name == vmi.name and one.status.phase not in FINAL:\n",
        without="        if one.status.phase not in FINAL:\n",
        because="Two instances with long names could share a label, and one would hold up the other.",
        tests=_BY_FIT,
    ),
    Guard(
        file=_FIT,
        line="        token = page.continue_token\n",
        without='        token = ""\n',
        because="Behind a page of old migrations the unfinished one would not be seen.",
        tests=_BY_FIT,
    ),
    Guard(
        file=_HOOK,
        line='"BadRequest", because if is_proven else HIDDEN)',
        without='"BadRequest", because)',
        because="Whoever reaches virt-api learns of anybody's instance how it is.",
        tests=_BY_HOOK,
    ),
    Guard(
        file=_HOOK,
        line='why = str(error) if is_proven else "its log says why"',
        without="why = str(error)",
        because="What virt-api could not read has a name that whoever asks need not know.",
        tests=_BY_HOOK,
    ),
    Guard(
        file=_HOOK,
        line="        if not self._places.take(peer, 1):\n",
        without="        if False:\n",
        because="One peer could have as many large bodies held as there are connections.",
        tests=_BY_HOOK,
    ),
    Guard(
        file=_HOOK,
        line="        if not self._of_namespaces.take(peer, asked.namespace, 1):\n",
        without="        if False:\n",
        because="A tenant who migrates without end would keep all others from it.",
        tests=_BY_HOOK,
    ),
    Guard(
        file=_MIGRATE,
        line="    because = await why_not(client, key)\n",
        without="    because = None\n",
        because="What our account makes is judged by no hook: two migrations of one instance would be made.",
        tests=_BY_MIGRATE,
    ),
    Guard(
        file=_MIGRATE,
        line="        return own_instance(vm, decode_vmi(",
        without="        return (lambda _vm, vmi: vmi)(vm, decode_vmi(",
        because="Who may migrate a machine would move an instance that is not its.",
        tests=_BY_MIGRATE,
    ),
    Guard(
        file="controlplane/virt_api/evacuation.py",
        line="    if because := await _why_in_vain(client, vmi):\n        return failure(400, because)\n",
        without="",
        because="A person would be told that a machine stays which is moved all the same.",
        tests=("tests/controlplane/virt_api/test_evictions.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vm/status.py",
        line="    if _is_migrating(own):\n",
        without="    if False:\n",
        because="Nobody would see of a machine that it migrates.",
        tests=("tests/controlplane/virt_controller/vm/test_status.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line=" and is_sending(world.launcher.sighting):\n",
        without=" and False:\n",
        because="A guest that goes on at its target would be said to have ended, and be ended there.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/leaving.py",
        line="    if transfer is not None and transfer.has_moved:  #",
        without="    if False:  #",
        because="A look in which libvirt was not heard would have a guest ended that goes on at its target.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line="    if is_to_be_given_away(vmi) or (",
        without="    if (",
        because="A launcher that ends between the source's last word and the commit would end what has moved.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/leaving.py",
        line="    return moving.failed or (moving.is_under_way and moving.start_timestamp is None)\n",
        without="    return False\n",
        because="A machine that has died with its target would be said to run for ever.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/leaving.py",
        line="    return identity is not None and identity.epoch > FIRST_EPOCH and identity.pod_uid in granted\n",
        without="    return False\n",
        because="A guest that has come would stand still for ever once its next migration was handed over.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/leaving.py",
        line=" > FIRST_EPOCH and identity.pod_uid in granted\n",
        without=" > FIRST_EPOCH\n",
        because="A guest whose run was given to another Pod would be taken for one to be let go on here.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration/policy.py",
        line="        if one.spec.selectors.virtual_machine_instance_selector.items() <= labels.items()\n        and ",
        without="        if ",
        because="A policy for some machines would be taken for all machines of a namespace.",
        tests=("tests/controlplane/virt_controller/migration/test_policy.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration/policy.py",
        line="        and one.spec.selectors.namespace_selector.items() <= namespace.items()\n",
        without="",
        because="A policy for some namespaces would be taken for the machines of all.",
        tests=("tests/controlplane/virt_controller/migration/test_policy.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="                    self._publish(is_connected=False, trouble=bounded(str(error)))",
        without="                    pass",
        because="A guest that has left would be said to stay where it cannot be looked at, and its target ended.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_transfer.py",),
    ),
)
