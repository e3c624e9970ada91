# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pause is a person's or a migration's: the one is kept, the other ends, whoever dies in between."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LEAVING = "controlplane/virt_handler/vmi/leaving.py"
_SESSION = "controlplane/virt_handler/launchers/session.py"
_BY_LEAVING = ("tests/controlplane/virt_handler/vmi/test_leaving.py",)
_BY_OBEY = ("tests/controlplane/virt_handler/launchers/test_session_obey.py",)
_BY_POWER = ("tests/controlplane/virt_handler/test_power.py",)
_BY_TRANSFER = ("tests/controlplane/virt_handler/launchers/test_session_transfer.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LEAVING,
        line="    return by_word or (moving is not None and moving.failed and moving.mode == STOPPED and",
        without="    return by_word or (False and",
        because="A guest stopped by a migration that virt-controller ends would stand still for ever, as by a person.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file=_LEAVING,
        line="    return by_word or (",
        without="    return (",
        because="The next migration's hand-over would leave a stopped guest standing still.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file=_LEAVING,
        line="moving.failed and moving.mode == STOPPED and _is_here",
        without="moving.mode == STOPPED and _is_here",
        because="A guest that has moved would be let go on where it was.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file=_LEAVING,
        line="    if sighting.has_gone_on or is_pause_told(vmi):\n",
        without="    if is_pause_told(vmi):\n",
        because="A person's pause would be ended for a migration that had stopped the guest once.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file=_LEAVING,
        line="    if sighting.has_gone_on or is_pause_told(vmi):\n",
        without="    if sighting.has_gone_on:\n",
        because="A person's pause would end with virt-handler, for a migration that had stopped the guest once.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file=_LEAVING,
        line=" or is_to_stop(vmi) or is_stopped(vmi, sighting)\n",
        without=" or is_stopped(vmi, sighting)\n",
        because="A person's pause would be taken for that of a migration whose virt-handler has died, and be ended.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_LEAVING,
        line=" or is_to_stop(vmi) or is_stopped(vmi, sighting)\n",
        without=" or is_to_stop(vmi)\n",
        because="A person would be told of a pause that ends with the migration's, a moment later.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_LEAVING,
        line="    return is_leaving or is_paused_by_migration(vmi, sighting)\n",
        without="    return is_leaving\n",
        because="A person would be told of a pause that ends as soon as the guest that has come is let go on.",
        tests=_BY_OBEY,
    ),
    Guard(
        file=_SESSION,
        line="self._publish(transfer=Transfer(moving.migration_uid), has_gone_on=False)\n",
        without="self._publish(transfer=Transfer(moving.migration_uid))\n",
        because="A guest that this process could not let go on would be taken for one that a person has paused since.",
        tests=_BY_TRANSFER,
    ),
    Guard(
        file=_SESSION,
        line=" and not is_sending(self._sighting):\n",
        without=":\n",
        because="A guest that runs until it is stopped would be taken for one that has gone on since.",
        tests=_BY_TRANSFER,
    ),
    Guard(
        file="controlplane/virt_handler/power.py",
        line='        return asked.verb != "pause" or await self._pauses.wait(key, asked.guest.vmi_uid)\n',
        without="        return True\n",
        because="A person would be told of a pause that ends with virt-handler, or when the guest moves.",
        tests=_BY_POWER,
    ),
    Guard(
        file="controlplane/virt_handler/power.py",
        line="        self._pauses.end(key)\n",
        without="",
        because="Whoever asked for a pause would wait for a word that is never written.",
        tests=_BY_POWER,
    ),
    Guard(
        file=_LEAVING,
        line="    if transfer is not None and transfer.has_moved:\n        return False  # it is gone",
        without="    if False:\n        return False  # it is gone",
        because="A guest that goes on at its target would be let go on here, as soon as libvirt hears.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="    order.left()\n",
        without="",
        because="The end of a migration would be said a fifth of a second later: libvirt looks for it as rarely.",
        tests=("tests/controlplane/virt_handler/migration/test_sending.py",),
    ),
    Guard(
        file=_SESSION,
        line="            has_moved = True\n            self._publish(",
        without="            self._publish(",
        because="One that has moved would be called failed where libvirt's last word is lost.",
        tests=_BY_TRANSFER,
    ),
    Guard(
        file=_SESSION,
        line="            self._publish(transfer=Transfer(uid, is_over=True, has_moved=True))\n",
        without="            self._publish(transfer=Transfer(uid, has_moved=True))\n",
        because="That a guest has moved would be written only after the last word of its source's libvirt.",
        tests=_BY_TRANSFER,
    ),
    Guard(
        file="controlplane/virt_handler/told_pauses.py",
        line="        except DecodeError:\n            return None\n",
        without="        except DecodeError:\n            return False\n",
        because="A pause would be answered as lost because its instance cannot be read for a moment.",
        tests=_BY_POWER,
    ),
    Guard(
        file="controlplane/virt_handler/told_pauses.py",
        line="            del waiting[word]\n",
        without="",
        because="Everybody who hung up would be kept for as long as the instance is.",
        tests=_BY_POWER,
    ),
    Guard(
        file=_LEAVING,
        line="moving.failed and moving.mode == STOPPED and _is_here(vmi, moving))",
        without="moving.failed and moving.mode == STOPPED)",
        because="A person's pause would be ended where a migration failed that left another Pod.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file="controlplane/virt_handler/told_pauses.py",
        line=" or vmi.metadata.uid != uid or is_final(vmi.status.phase):\n",
        without=":\n",
        because="The pause of one guest would be answered by what is said of another one.",
        tests=_BY_POWER,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/decide.py",
        line=" and is_held(vmi, launcher.sighting) is not is_pause_told(vmi):\n",
        without=" and False:\n",
        because="A guest whose owner has paused it would go on at the target of its migration.",
        tests=_BY_LEAVING,
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            await watch.let_go_on()\n",
        without="            pass\n",
        because="A guest that was stopped for a migration that has failed would wait for somebody to look at it.",
        tests=("tests/controlplane/virt_handler/migration/test_sending.py",),
    ),
    Guard(
        file=_LEAVING,
        line="moving.mode == STOPPED and _is_here(vmi, moving)\n\n\ndef is_stopped",
        without="moving.mode == STOPPED\n\n\ndef is_stopped",
        because="Nobody could pause a guest that has come here, if its source died before it said so.",
        tests=_BY_OBEY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/hand_over.py",
        line="    if moving is None or moving.mode != STOPPED or (",
        without="    if True or (",
        because="A guest that was stopped to be sent would stand still after the next hand-over, as if by a person.",
        tests=("tests/controlplane/virt_controller/migration/test_reconciler.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration/hand_over.py",
        line='(told is not None and told.status == "True")',
        without="told is not None",
        because="A pause that was over before would hide that the guest was stopped to be sent: it would stand still.",
        tests=("tests/controlplane/virt_controller/migration/test_hand_over.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/converge.py",
        line="max(0, progress.total - self.spare)",
        without="progress.total",
        because="With room for 512 GiB a guest of one would keep others from being moved for 21 hours.",
        tests=("tests/controlplane/virt_handler/migration/test_converge.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vm/live_change.py",
        line="(fixed_hash(world.template), former_fixed_hash(world.template))",
        without="(fixed_hash(world.template),)",
        because="After an upgrade no running machine could be changed any more before its restart.",
        tests=("tests/controlplane/virt_controller/vm/test_live_change.py",),
    ),
    Guard(
        file="controlplane/api/admission/kinds/kubevirt.py",
        line="    if size is not None and not (LEAST_BYTES <= size <= MAX_MEMORY and size % BLOCK_BYTES == 0):\n",
        without="    if False:\n",
        because="A mistyped amount would keep every machine from starting that names none itself.",
        tests=("tests/controlplane/api/admission/kinds/test_kubevirt.py",),
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line='        if verb == "pause" and held and vmi is not None and not is_pause_told(vmi):\n',
        without="        if False:\n",
        because="Who asks twice would be told of a pause that nobody else knows of, and that a restart ends.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_obey.py",),
    ),
)
