# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets through the tunnel of a migration, and what whoever is at its ends can cost."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_BINDING = "controlplane/virt_handler/migration/binding.py"
_DEPARTURE = "controlplane/virt_handler/migration/departure.py"
_DOORS = "controlplane/virt_handler/migration/doors.py"
_ENTRANCE = "controlplane/virt_handler/migration/entrance.py"
_INCOMING = "controlplane/virt_handler/incoming/status.py"
_CONVERGE = "controlplane/virt_handler/migration/converge.py"
_PASSAGE = "controlplane/virt_handler/migration/passage.py"
_PEER = "controlplane/virt_handler/migration/peer.py"
_PUMP = "controlplane/virt_handler/migration/pump.py"
_RECEPTION = "controlplane/virt_handler/migration/reception.py"
_HERE = "tests/controlplane/virt_handler/migration"
_BY_BINDING = (f"{_HERE}/test_binding.py",)
_BY_DEPARTURE = (f"{_HERE}/test_departure.py",)
_BY_DOORS = (f"{_HERE}/test_doors.py",)
_BY_INCOMING = ("tests/controlplane/virt_handler/incoming/test_incoming.py",)
_BY_PEER = (f"{_HERE}/test_peer.py",)
_BY_PUMP = (f"{_HERE}/test_pump.py",)
_BY_RECEPTION = (f"{_HERE}/test_reception.py",)
_BY_TUNNEL = (f"{_HERE}/test_tunnel.py",)
_WHEREABOUTS = "controlplane/virt_handler/migration/whereabouts.py"
_BY_WHEREABOUTS = ("tests/controlplane/virt_handler/migration/test_whereabouts.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_handler/migration/network.py",
        line="    if not found and network:\n",
        without="    if False:\n",
        because="Memory of guests would go by another network than the one that was chosen for it.",
        tests=(f"{_HERE}/test_network.py",),
    ),
    Guard(
        file="controlplane/virt_handler/incoming/status.py",
        line="isinstance(problem.step, OpenDoor) and isinstance(problem.error, NoPlace)",
        without="isinstance(problem.step, OpenDoor)",
        because="A source that says only later by what it is known would have its migration end at once.",
        tests=("tests/controlplane/virt_handler/incoming/test_incoming.py",),
    ),
    Guard(
        file=_BINDING,
        line="    if greeting.binding != expected:\n",
        without="    if False:\n",
        because="A node that is the source of one migration would reach the target of another.",
        tests=_BY_BINDING,
    ),
    Guard(
        file=_PEER,
        line="server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)",
        without="server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_NONE)",
        because="Whoever reaches the port would reach a target's libvirtd.",
        tests=_BY_TUNNEL,
    ),
    Guard(
        file=_PEER,
        line="    if not said or len(said) > _CERTIFICATE_LIMIT:\n",
        without="    if not said:\n",
        because="A node's annotation may be as long as an object: it is no certificate then.",
        tests=_BY_PEER,
    ),
    Guard(
        file=_ENTRANCE,
        line="        async with asyncio.timeout(PROOF_SECONDS):\n            await caller.prove()\n",
        without="        await caller.prove()\n",
        because="Connections that say nothing would keep their places for ever.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_ENTRANCE,
        line="        async with asyncio.timeout(PROOF_SECONDS):\n            return read(",
        without="        if True:\n            return read(",
        because="A source that proves itself and says nothing would hold its place for ever.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_ENTRANCE,
        line="            if self._open[channel] >= MOST[channel]:\n",
        without="            if False:\n",
        because="A captured source would open as many connections to a target's libvirtd and QEMU as it likes.",
        tests=_BY_TUNNEL,
    ),
    Guard(
        file=_PASSAGE,
        line="            async with asyncio.timeout(CONNECT_SECONDS):\n                await there.prove()\n",
        without="            await there.prove()\n",
        because="Whoever listens at an address and says nothing would hold a migration up for ever.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_PASSAGE,
        line="                most = MOST[channel]\n",
        without="                most = 1000\n",
        because="A launcher could have virt-handler call its target as often as it likes.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_RECEPTION,
        line=" or self._left <= 0:\n",
        without=":\n",
        because="A launcher that calls again and again would have a processor busy with proofs.",
        tests=_BY_RECEPTION,
    ),
    Guard(
        file=_ENTRANCE,
        line="            if self._unproven[host] < UNPROVEN:\n",
        without="            if True:\n",
        because="A third node could keep the source of any migration out.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_ENTRANCE,
        line="UNPROVEN = sum(MOST.values())\n",
        without="UNPROVEN = 4\n",
        because="A machine with many disks could not be moved from a node that is busy.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_ENTRANCE,
        line="                self._unproven -= Counter((host,))\n",
        without="                pass\n",
        because="A source would be kept out by what it has proven itself.",
        tests=_BY_TUNNEL,
    ),
    Guard(
        file=_ENTRANCE,
        line="        self._ends.add(caller)\n",
        without="",
        because="A captured source could keep the door open, and all that waits for it to be closed.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_PASSAGE,
        line="        self._ends.add(there)\n",
        without="",
        because="A captured target could keep a source from ever being done with its migration.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_CONVERGE,
        line="            await self._write_stop()\n",
        without="",
        because="A guest that is stopped when virt-handler dies would be taken for one that a person has paused.",
        tests=(f"{_HERE}/test_converge.py",),
    ),
    Guard(
        file=_CONVERGE,
        line="        await asyncio.wait((self._stopping,))  # one that came later would be nobody's\n",
        without="",
        because="A guest whose migration has failed would be stopped a moment later, and nobody let it go on.",
        tests=(f"{_HERE}/test_converge.py",),
    ),
    Guard(
        file=_CONVERGE,
        line='            if await self._guest.state() == State(Life.PAUSED, "user"):\n',
        without="            if False:\n",
        because="A guest that was stopped when its migration had just failed would stand still.",
        tests=(f"{_HERE}/test_converge.py",),
    ),
    Guard(
        file=_CONVERGE,
        line="settings.allow_workload_disruption and not is_held\n",
        without="settings.allow_workload_disruption\n",
        because="A pause of its owner's would be taken for the migration's, and be ended with it.",
        tests=(f"{_HERE}/test_converge.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            most=most_to_send(order.vmi),\n",
        without="",
        because="A tenant's launcher that says how much there is to send would hold a place for migrations for years.",
        tests=(f"{_HERE}/test_sending.py",),
    ),
    Guard(
        file=_CONVERGE,
        line="min(max(0, progress.total - self.spare), self.most)",
        without="max(0, progress.total - self.spare)",
        because="A tenant's launcher that says how much there is to send would hold a place for migrations for years.",
        tests=(f"{_HERE}/test_converge.py",),
    ),
    Guard(
        file=_CONVERGE,
        line="            if progress is not None:\n",
        without="            if progress is None:\n                continue\n            if True:\n",
        because="A launcher that says nothing of its migration would hold a place for ever.",
        tests=(f"{_HERE}/test_converge.py",),
        may_hang=True,
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            await target.close()  # which ends the call, whatever libvirt there does\n",
        without="            pass\n",
        because="A target that ends nothing would cost the source its connection to its own guest.",
        tests=(f"{_HERE}/test_sending.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            self._progressed(key, None)\n",
        without="",
        because="A migration that is over would be shown as one that no longer gets on, until virt-handler ends.",
        tests=(f"{_HERE}/test_sending.py",),
    ),
    Guard(
        file=_DOORS,
        line="            found.timer.cancel()\n",
        without="",
        because="A door that is opened again would be closed when the time of the former one is over.",
        tests=_BY_DOORS,
    ),
    Guard(
        file=_DOORS,
        line="            self._changed(found.vmi_uid)\n",
        without="",
        because="Nobody would see that a door is gone to which a source is still sent.",
        tests=_BY_DOORS,
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            guest.cut()  # it is this side that does not end it\n",
        without="            pass\n",
        because="A launcher that answers and gives nothing up would hold a place for ever.",
        tests=(f"{_HERE}/test_sending.py",),
        may_hang=True,
    ),
    Guard(
        file="controlplane/virt_handler/launchers/session.py",
        line="        self._unwanted.set()\n",
        without="",
        because="What is cancelled would have no other end than libvirt's, which a tenant may have taken over.",
        tests=("tests/controlplane/virt_handler/launchers/test_session_transfer.py",),
    ),
    Guard(
        file="controlplane/virt_handler/vmi/leaving.py",
        line=" or is_stopped(vmi, launcher.sighting))\n",
        without=")\n",
        because="A guest that was stopped for its migration would stand still when virt-handler has died.",
        tests=("tests/controlplane/virt_handler/vmi/test_leaving.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            if state.life is Life.RUNNING:\n",
        without="            if False:\n",
        because="A guest that was let go on after all was sent would be ended, and an older one go on over its disks.",
        tests=(f"{_HERE}/test_sending.py",),
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="            if state == LEFT:\n",
        without="            if False:\n",
        because="A guest that its source did not hear to have arrived would stand still for a minute.",
        tests=(f"{_HERE}/test_sending.py",),
    ),
    Guard(
        file=_RECEPTION,
        line="len(self._served) >= self._most or ",
        without="",
        because="Who connects often enough would take all descriptors of virt-handler.",
        tests=_BY_RECEPTION,
        may_hang=True,
    ),
    Guard(
        file=_RECEPTION,
        line="        for task in self._served:\n            task.cancel()\n",
        without="",
        because="A migration that is over would go on through connections that it had.",
        tests=_BY_TUNNEL,
        may_hang=True,
    ),
    Guard(
        file=_RECEPTION,
        line="                await asyncio.sleep(AGAIN_SECONDS)\n                continue\n",
        without="                raise\n",
        because="One moment without a descriptor would close the door for good.",
        tests=_BY_RECEPTION,
        may_hang=True,
    ),
    Guard(
        file=_PUMP,
        line="            if len(line) >= limit or not await self.receive(one):\n",
        without="            if not await self.receive(one):\n",
        because="A line without end would fill virt-handler's memory.",
        tests=_BY_PUMP,
        may_hang=True,
    ),
    Guard(
        file=_PUMP,
        line="        await asyncio.sleep(0)  # others",
        without="        pass  # others",
        because="One fast connection would hold up all other migrations of a node.",
        tests=_BY_PUMP,
    ),
    Guard(
        file=_PUMP,
        line="    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF  # see `finish`\n",
        without="",
        because="Who has said all would not hear the answer.",
        tests=_BY_PUMP,
    ),
    Guard(
        file=_PUMP,
        line="        left.close()\n        right.close()\n",
        without="",
        because="A connection that breaks at one end would be open at the other.",
        tests=_BY_PUMP,
        may_hang=True,
    ),
    Guard(
        file=_PUMP,
        line="            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n",
        without="            pass\n",
        because="Each of QEMU's and libvirt's questions in two pieces would wait 40 ms for TCP.",
        tests=_BY_PUMP,
    ),
    Guard(
        file=_INCOMING,
        line="    if world.door is None or not can_take or new.start_timestamp is not None:\n",
        without="    if world.door is None or new.start_timestamp is not None:\n",
        because="A source would begin with a door behind which nobody can take the guest in.",
        tests=_BY_INCOMING,
    ),
    Guard(
        file=_DEPARTURE,
        line="                self.there = await self._whole()\n",
        without="                self.there = await self._target.guest(self._name)\n",
        because="A guest that ran on at its source, and then died, would go on from before that at its target.",
        tests=_BY_DEPARTURE,
    ),
    Guard(
        file=_DEPARTURE,
        line="        while (await self._node.find_traces(self._pod_uid)).emulators:\n",
        without="        while False:\n",
        because="A guest would go on at its target while its QEMU is there at its source.",
        tests=_BY_DEPARTURE,
    ),
    Guard(
        file=_WHEREABOUTS,
        line="    if not is_anothers(address):\n",
        without="    if False:\n",
        because="A captured node would have another node's virt-handler call what listens beside it.",
        tests=_BY_WHEREABOUTS,
    ),
    Guard(
        file=_WHEREABOUTS,
        line="    if address in _addresses(source) or address == _known(source):\n",
        without="    if False:\n",
        because="A captured node would have another node's virt-handler call that node itself.",
        tests=_BY_WHEREABOUTS,
    ),
    Guard(
        file=_WHEREABOUTS,
        line="    if not has_network and address != _known(target):\n",
        without="    if False:\n",
        because="A captured node would have another node's virt-handler call whom it likes.",
        tests=_BY_WHEREABOUTS,
    ),
    Guard(
        file="controlplane/virt_handler/migration/sending.py",
        line="        address = address_of(moving, source, target, has_network=self._has_network())\n",
        without="        address = moving.target_node_address\n",
        because="A captured node would choose whom another node's virt-handler calls.",
        tests=_BY_WHEREABOUTS,
    ),
)
