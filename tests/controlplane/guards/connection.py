# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What whoever reaches a port can cost the process behind it."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_CONNECTION = "controlplane/connection.py"
_HEADS = "controlplane/heads.py"
_BY_LISTENER = ("tests/controlplane/test_listener.py",)
_BY_HOSTILE = ("tests/controlplane/hypervisor/test_hostile.py",)
_BY_CONNECTION = ("tests/controlplane/test_connection.py",)
_WRITTEN = "controlplane/written.py"
_BY_WRITTEN = ("tests/controlplane/test_written.py",)
_BY_FRAMING = ("tests/controlplane/test_framing.py",)
_BY_SERVER = ("tests/controlplane/virt_api/test_server.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_HEADS,
        line="        if len(self._unanswered) >= _MOST_AHEAD:\n            return 0\n",
        without="",
        because="Hundreds of short requests ahead of their answers hold a megabyte of each connection.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file="controlplane/hypervisor/loop.py",
        line="        wire.took_in(self._meter.since(), now)",
        without="        wire.took_in(0, now)",
        because="Launchers that begin large events and never end them would take all of virt-handler's memory.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="        self._charge(used, self._meter.total())",
        without="        self._charge(used, 0)",
        because="Launchers that begin large answers and never end them would take all of virt-handler's memory.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="        self._charge(used, read)",
        without="        self._charge(used, 0)",
        because="What launchers send before quick answers, megabytes a second, would be counted by nobody.",
        tests=("tests/controlplane/hypervisor/test_calls.py",),
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="            self._wire.took_in(read - self._counted, now)",
        without="            self._wire.took_in(read, now)",
        because="What an honest libvirtd sends slowly would be counted at every look, until it is cut.",
        tests=("tests/controlplane/hypervisor/test_calls.py",),
    ),
    Guard(
        file="controlplane/hypervisor/intake.py",
        line="            self.left = min(self.left, before)",
        without="            self.left = min(self.left, self.most)",
        because="Each question to an agent would let a launcher send megabytes more.",
        tests=("tests/controlplane/hypervisor/test_intake.py",),
    ),
    Guard(
        file="controlplane/hypervisor/wire.py",
        line="            self.cut(intake.UNREAD)",
        without="            pass",
        because="Launchers that ask whether we are there and read no answer would take all of virt-handler's memory.",
        tests=_BY_HOSTILE,
    ),
    Guard(
        file="controlplane/hypervisor/intake.py",
        line="self._since + amount if is_full else 0",
        without="self._since + amount",
        because="A connection of a launcher that reads what it is sent would be cut after 4 KiB.",
        tests=("tests/controlplane/hypervisor/test_intake.py",),
    ),
    Guard(
        file="controlplane/listener.py",
        line="        ended = next(iter(self._idle), None) or next(iter(self._handshakes), None)",
        without="        ended = next(iter(self._handshakes), None)",
        because="Sixty-five Pods that hold a connection each would keep the kubelet out, and have every process ended.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="        if peer in self._peers.values():\n            return False\n",
        without="",
        because="One address could end everybody's connections.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="        self._idle.pop(request.protocol, None)\n",
        without="",
        because="Who is just being answered would be cut off for somebody who has not asked.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file="controlplane/listener.py",
        line="isinstance(handler, Connection) and not handler.is_proven:",
        without="isinstance(handler, Connection):",
        because="The API server's idle connections would make room for anybody's.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file=_CONNECTION,
        line="            if _IN_CHUNKS in looked_at.lower():",
        without="            if _IN_CHUNKS in looked_at:",
        because="Whoever writes the header in other letters has all of a processor for a megabyte a second.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="            looked_at = self._end_of_last + data",
        without="            looked_at = data",
        because="Whoever cuts the header in two has all of a processor for a megabyte a second.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="tls.getpeercert(binary_form=True) is not None",
        without="True",
        because="Everybody who can begin TLS is taken for somebody who has proved who it is.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="log.addFilter(_OwnFaults())",
        without="_OwnFaults()",
        because="Each request that is none is a traceback in the log, as often as its sender likes.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_HEADS,
        line="        if self._held + size > self._most:\n",
        without="        if False:\n",
        because="Connections of one peer hold a gigabyte of headers that never end.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_HEADS,
        line="        self._body = 0 if self._unanswered else body\n",
        without="        self._body = body\n",
        because="Bodies that are sent ahead of answers would be held by nobody's count.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_HEADS,
        line="            self._held -= self._unanswered.popleft()\n",
        without="            pass\n",
        because="A connection that is kept would be ended for what was answered long ago.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_HEADS,
        line="        looked_at = self._end_of_last + data",
        without="        looked_at = data",
        because="What follows a head that came in two packets would count as the head's.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="        if self.is_proven:\n            self._heads =",
        without="        if True:\n            self._heads =",
        because="Everybody would hold as much of headers as who speaks for users.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="            self._heads = Heads(MOST_PROVEN_HEAD_BYTES)\n",
        without="            pass\n",
        because="Users of many groups with long names would be turned away.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_CONNECTION,
        line="            self._heads.body_ended()\n",
        without="            pass\n",
        because="After a body in chunks heads would be counted no more.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_CONNECTION,
        line="        if self._upgraded:\n",
        without="        if False:\n",
        because="What follows a CONNECT or an Upgrade would be kept for a protocol that nobody speaks.",
        tests=_BY_FRAMING,
    ),
    Guard(
        file=_CONNECTION,
        line="        if self._is_refused or self._close:\n",
        without="        if self._is_refused:\n",
        because="What nobody will read would be answered with 411 within the answer that is being written.",
        tests=_BY_FRAMING,
    ),
    Guard(
        file=_CONNECTION,
        line="        while at < len(data) and not self._close:\n",
        without="        while at < len(data):\n",
        because="What nobody will read would be answered with 431 within the answer that is being written.",
        tests=_BY_FRAMING,
    ),
    Guard(
        file="controlplane/listener.py",
        line="                request.protocol.answered()\n",
        without="                pass\n",
        because="A connection that is kept would be ended after some hundred requests.",
        tests=_BY_CONNECTION,
    ),
    Guard(
        file=_WRITTEN,
        line="            await _written(request)\n",
        without="",
        because="Whoever reads none of the answers has them all held.",
        tests=_BY_WRITTEN,
        may_hang=True,
    ),
    Guard(
        file=_WRITTEN,
        line="            request.transport.abort()\n",
        without="            pass\n",
        because="Whoever does not read an answer would have it held without end.",
        tests=_BY_WRITTEN,
        may_hang=True,
    ),
    Guard(
        file=_WRITTEN,
        line="    buffers = (transport, below) if",
        without="    buffers = (transport,) if",
        because="What is encrypted and not sent would be held by nobody's count.",
        tests=_BY_WRITTEN,
    ),
    Guard(
        file=_CONNECTION,
        line="            self._end = self._loop.call_later(LAST_WORDS_SECONDS, transport.abort)\n",
        without="            pass\n",
        because="A connection that is closed while its peer does not read would stay.",
        tests=_BY_WRITTEN,
        may_hang=True,
    ),
    Guard(
        file="controlplane/virt_api/reviews.py",
        line="            charge(len(answer.body) - held)\n",
        without="            pass\n",
        because="Small reviews of which large answers are made would take more than their peer's room.",
        tests=("tests/controlplane/virt_api/test_reviews.py",),
    ),
    Guard(
        file=_WRITTEN,
        line=" or len(body) <= PIECE_BYTES or",
        without=" or len(body) > 0 or",
        because="Each connection would keep its last answer twice, for as long as it is idle.",
        tests=_BY_WRITTEN,
    ),
    Guard(
        file=_WRITTEN,
        line="        kept.force_close()\n",
        without="        pass\n",
        because="A large answer would keep a connection that was to end with it.",
        tests=_BY_WRITTEN,
    ),
)
