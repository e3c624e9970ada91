# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way from virt-api to virt-handler: who is let in, who is believed, and what either can make the other do."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DOOR = "controlplane/virt_handler/door.py"
_PEERS = "controlplane/peers.py"
_LINK = "controlplane/handler_link.py"
_HANDLERS = "controlplane/virt_api/handlers.py"
_GUESTS = "controlplane/virt_api/guests.py"
_ASKED_OF = "controlplane/virt_api/power.py"
_LISTENER = "controlplane/listener.py"
_BY_DOOR = ("tests/controlplane/virt_handler/test_door.py",)
_BY_GUESTS = ("tests/controlplane/virt_api/test_guests.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_DOOR,
        line="    return server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)",
        without="    return server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_OPTIONAL)",
        because="Who shows nothing gets through the handshake, which is what room is made for.",
        tests=_BY_DOOR,
        may_hang=True,
    ),
    Guard(
        file=_DOOR,
        line="server_context(ssl.TLSVersion.TLSv1_3,",
        without="server_context(ssl.TLSVersion.TLSv1_2,",
        because="Before TLS 1.3 certificates go in the clear, and a session may be resumed by its id.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_DOOR,
        line=" or not names_role(connection, self._uri):",
        without=":",
        because="Whoever has any client pair of the control plane resets everybody's guests.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_PEERS,
        line='if kind == "URI"] == [uri]',
        without='if kind == "URI"][:1] > [""]',
        because="Another role's pair is taken for virt-api's.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_DOOR,
        line="            if len(body) > QUESTION_LIMIT_BYTES:",
        without="            if False:",
        because="A captured virt-api fills virt-handlers' memory.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_DOOR,
        line="        response.force_close()\n",
        without="",
        because="A connection outlives the authority by which it was let in.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_LISTENER,
        line="if not self._room.take(peer, 1) and not self._makes_room(peer):",
        without="if not self._room.take(peer, 1):",
        because="As many silent addresses as there are places keep virt-api from a node.",
        tests=_BY_DOOR,
    ),
    Guard(
        file=_LINK,
        line="    if len(data) > ANSWER_LIMIT_BYTES:",
        without="    if False:",
        because="A node's answer is parsed whatever its length.",
        tests=("tests/controlplane/test_handler_link.py",),
    ),
    Guard(
        file=_HANDLERS,
        line="        if len(body) > ANSWER_LIMIT_BYTES:",
        without="        if False:",
        because="A captured node fills virt-api's memory.",
        tests=_BY_GUESTS,
        may_hang=True,
    ),
    Guard(
        file=_HANDLERS,
        line="        if places.total >= AT_MOST or not places.take(namespace, 1):",
        without="        if False:",
        because="A node that answers nothing holds as many requests as are made.",
        tests=_BY_GUESTS,
        may_hang=True,
    ),
    Guard(
        file=_HANDLERS,
        line="self._asking.setdefault(kind, Shares(AT_ONCE, least=1))",
        without="self._asking.setdefault((node, type(None)), Shares(AT_ONCE, least=1))",
        because="Whose machines do not answer questions would keep power verbs from their node.",
        tests=_BY_GUESTS,
        may_hang=True,
    ),
    Guard(
        file=_HANDLERS,
        line="not places.take(namespace, 1):",
        without='not places.take("", 1):',
        because="Whose machines do not answer would keep everybody's from their node.",
        tests=_BY_GUESTS,
        may_hang=True,
    ),
    Guard(
        file=_HANDLERS,
        line="allow_redirects=False",
        without="allow_redirects=True",
        because="A captured node has virt-api ask whomever it likes.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file=_HANDLERS,
        line="        place = ipaddress.ip_address(host",
        without="        place = str(host",
        because="A captured node has virt-api look up names.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file=_HANDLERS,
        line="    if not admits(place):\n",
        without="    if False:\n",
        because="A captured node has virt-api call itself, or a cloud's metadata.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file="controlplane/peers.py",
        line='        "::/8", "2001::/32", "2002::/16",\n',
        without="",
        because="An address of this host passes in the spelling of the other family.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file="controlplane/peers.py",
        line=', "fd00:ec2::254/128", "fd20:ce::254/128",',
        without="",
        because="A captured node has virt-api call a cloud's metadata service that is no link-local one.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file="controlplane/guest_network.py",
        line=" and not any(network.overlaps(one) for one in MEAN_ELSE)",
        without=" and not (network.is_loopback or network.is_multicast or network.is_link_local)",
        because="A guest has addresses that its Pod's kernel takes for nobody's, or everybody's.",
        tests=("tests/controlplane/domain/test_network.py",),
    ),
    Guard(
        file=_PEERS,
        line="    context.load_verify_locations(cadata=server)\n",
        without="    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n",
        because="Whoever listens where a virt-handler did is asked in its place.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file=_GUESTS,
        line="            why = bounded(text) or",
        without="            why = text or",
        because="A captured node writes to the terminals of those who ask about its machines.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file=_GUESTS,
        line='        case "lost":\n            return failure(503, f"{message}; whether it happened is not known")',
        without='        case "lost":\n            return failure(503, message, headers=_LATER)',
        because="Clients repeat by themselves a reset that may have happened.",
        tests=_BY_GUESTS,
    ),
    Guard(
        file=_ASKED_OF,
        line="    if not status.node_name or len(pods) != 1:",
        without="    if not status.node_name or not pods:",
        because="Of two Pods that may have the guest, one is picked.",
        tests=_BY_GUESTS,
    ),
)
