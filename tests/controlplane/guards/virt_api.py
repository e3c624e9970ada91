# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api: who calls, what they may, how much is read, and what is written in their name."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_IDENTITY = "controlplane/virt_api/identity.py"
_SUBRESOURCES = "controlplane/virt_api/subresources.py"
_BY_IDENTITY = ("tests/controlplane/virt_api/test_identity.py",)
_BY_REVIEWERS = ("tests/controlplane/virt_api/test_reviewers.py",)
_BY_SERVER = ("tests/controlplane/virt_api/test_server.py",)
_FAIR = "controlplane/virt_api/fair.py"
_REVIEWS = "controlplane/virt_api/reviews.py"
_JUDGES = "controlplane/virt_api/judges.py"
_LISTENER = "controlplane/listener.py"
_SHARES = "controlplane/shares.py"
_BY_FAIR = ("tests/controlplane/virt_api/test_fair.py",)
_BY_REVIEWS = ("tests/controlplane/virt_api/test_reviews.py",)
_BY_LISTENER = ("tests/controlplane/test_listener.py",)
_BY_SHARES = ("tests/controlplane/test_shares.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_IDENTITY,
        line="    if _proven_name(chain, clients.authority, now) not in clients.names:\n",
        without="    if not _proven_name(chain, clients.authority, now):\n",
        because="Whoever has any certificate of that CA sends reviews, and evicts.",
        tests=_BY_REVIEWERS,
    ),
    Guard(
        file=_IDENTITY,
        line="    if clients is None:\n        return\n    if not chain:\n        raise",
        without="    if clients is None or not chain:\n        return\n    if not chain:\n        raise",
        because="Who shows no certificate at all sends reviews, and evicts.",
        tests=_BY_REVIEWERS,
    ),
    Guard(
        file=_IDENTITY,
        line="    if proxy is None:\n        raise",
        without="    if False:\n        raise",
        because="Before the front proxy is known, nobody may speak for users.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line=(
            "    if not chain:\n"
            '        raise UnauthenticatedError("no client certificate of the front proxy")\n'
            "    name = _proven_name(chain, proxy.authority, now)\n"
        ),
        without='    name = _proven_name(chain, proxy.authority, now) if chain else "front-proxy-client"\n',
        because="Without the front proxy's certificate, its headers are anybody's words.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if not facts.begins <= now < facts.ends:",
        without="    if not facts.begins <= now:",
        because="A connection outlives its certificate, which does not count after its end.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if not facts.is_for_clients:",
        without="    if False:",
        because="A serving certificate of that CA does not make its holder the front proxy.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if not name:\n        raise",
        without="    if False:\n        raise",
        because="A request without a user is nobody's.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if not groups or not all(groups):",
        without="    if False:",
        because="Nobody has no group: such headers are not of a front proxy.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if len(values) > 1:",
        without="    if False:",
        because="Of two user names, one was put there by the caller.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line='    except UnicodeDecodeError as error:\n        raise UnauthenticatedError("a header of',
        without='    except ZeroDivisionError as error:\n        raise UnauthenticatedError("a header of',
        because="A header that is no text must end in 401, not in an error of our own.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="        if not key or _BAD_ESCAPE.search(escaped):",
        without="        if not key:",
        because="A malformed extra would be reviewed as another one.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="ExtendedKeyUsageOID.SERVER_AUTH])  # says",
        without="ExtendedKeyUsageOID.CLIENT_AUTH])  # says",
        because="A certificate that does not say what it is for is not for clients.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if chain[-1] not in _certificates(authority):",
        without="    if False:",
        because="Each of the CAs that the handshake takes signs any name; only one vouches for the front proxy.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="    if _proven_name(chain, clients.authority, now) not in clients.names:",
        without="    if not _proven_name(chain, clients.authority, now):",
        because="A CA that signs many clients' certificates must not make all of them API servers.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file="controlplane/virt_api/server.py",
        line="            check_reviewer(self.hook_clients, verified_chain(connection), self.clock.now())\n",
        without="",
        because="Where API servers prove themselves, nobody else's reviews are to be judged.",
        tests=_BY_SERVER,
    ),
    Guard(
        file="controlplane/virt_api/settings.py",
        line="    if not names or not",
        without="    if not",
        because="A CA without names must not be taken for everybody.",
        tests=("tests/controlplane/virt_api/test_settings.py",),
    ),
    Guard(
        file=_SUBRESOURCES,
        line="            if not decision.allowed:\n                return _denied(route, user)\n",
        without="",
        because="We act with our own rights: what the caller may do must be asked before.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SUBRESOURCES,
        line="write.patch, resource_version=version, dry_run=dry_run)",
        without="write.patch, dry_run=dry_run)",
        because="A run strategy that somebody set meanwhile must not be written over.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SUBRESOURCES,
        line='subresource="status", resource_version=version, dry_run=dry_run',
        without='subresource="status", dry_run=dry_run',
        because="A queue is written whole: what was asked meanwhile would be lost.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SUBRESOURCES,
        line="write.patch, uid=write.uid, dry_run=dry_run)",
        without="write.patch, dry_run=dry_run)",
        because="A grace period is shortened of the instance that was decided about, not of the next.",
        tests=_BY_SERVER,
    ),
    Guard(
        file=_SHARES,
        line=" and held > max(self._share(peer), self._least):",
        without=":",
        because="A Pod that holds all there is must not keep the API server out.",
        tests=_BY_SHARES,
    ),
    Guard(
        file=_SHARES,
        line="        if self._total + amount > self._most and held > max(self._share(peer), self._least):",
        without="        if False:",
        because="Whoever reaches the port must not fill the memory.",
        tests=_BY_SHARES,
    ),
    Guard(
        file=_SHARES,
        line="        return self._most // (peers * (peers - 1) or 1)\n",
        without="        return self._most // peers\n",
        because="Peers that come one after the other would hold five times what there is.",
        tests=_BY_SHARES,
    ),
    Guard(
        file=_FAIR,
        line="min(self._waiting, key=lambda one: self._used.seconds(one, now))",
        without="next(iter(self._waiting))",
        because="Who sends the most reviews must not have the most turns.",
        tests=_BY_FAIR,
    ),
    Guard(
        file=_FAIR,
        line="min(tenants, key=lambda one: self._used_by_tenant.seconds((peer, one), now))",
        without="next(iter(tenants))",
        because="One tenant's large objects must not keep all others' waiting: all come by the one API server.",
        tests=_BY_FAIR,
    ),
    Guard(
        file=_FAIR,
        line="self._used_by_tenant.add((peer, tenant), seconds, now)",
        without='self._used_by_tenant.add(("", tenant), seconds, now)',
        because="A Pod's claims about a namespace must not cost that namespace its turns.",
        tests=_BY_FAIR,
    ),
    Guard(
        file=_REVIEWS,
        line="        tenant = find_namespace(body)\n",
        without='        tenant = ""\n',
        because="One tenant's large objects must not keep all others' waiting: all come by the one API server.",
        tests=_BY_REVIEWS,
    ),
    Guard(
        file=_REVIEWS,
        line="        if not self._tenants.take(peer, tenant, len(body)):",
        without="        self._tenants.take(peer, tenant, len(body))\n        if False:",
        because="One tenant's bodies must not take all of the API server's room.",
        tests=_BY_REVIEWS,
    ),
    Guard(
        file=_REVIEWS,
        line="            self._tenants.give_back(peer, tenant, len(body))\n",
        without="            pass\n",
        because="A tenant's room that is never given back is full for good.",
        tests=_BY_REVIEWS,
    ),
    Guard(
        file="controlplane/api/admission/review.py",
        line="_NAMESPACE.search(body[:_LOOKED_AT_BYTES])",
        without="_NAMESPACE.search(body)",
        because="Megabytes must not be searched on the loop before it is anybody's turn.",
        tests=("tests/controlplane/api/admission/test_review.py",),
    ),
    Guard(
        file=_JUDGES,
        line="await asyncio.get_running_loop().run_in_executor(self._threads, verdict)",
        without="verdict()",
        because="A large object must not hold up everything else that is asked.",
        tests=("tests/controlplane/virt_api/test_server.py",),
    ),
    Guard(
        file=_REVIEWS,
        line="        until_written.callback(lambda: self._room.give_back(peer, held))",
        without="        pass",
        because="A room that is never given back is full for good.",
        tests=_BY_REVIEWS,
    ),
    Guard(
        file=_JUDGES,
        line="            if turn.done():\n                self._idle += 1\n                self._grant()",
        without="            if turn.done():\n                self._grant()",
        because="A thread that is never given back judges nothing any more.",
        tests=_BY_REVIEWS,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line="not self._room.take(peer, 1) and not self._makes_room(peer):\n",
        without="not self._room.take(peer, 1) and False:\n",
        because="Whoever reaches the port must not have connections without end, handshake or none.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file=_LISTENER,
        line="            if handler not in self._silent:",
        without="            if False:",
        because="Handshakes that failed must not use up their address's share for good.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line='        self._give_back(cast("Connection", handler))\n',
        without="",
        because="Connections that ended must not use up their address's share for good.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line="ssl=self._tls, ssl_handshake_timeout=seconds",
        without="ssl=self._tls",
        because="A handshake that never ends must not be held for a minute.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line="        self._silent[handler] = loop.call_later(FIRST_REQUEST_SECONDS, transport.abort)",
        without="        self._silent[handler] = loop.call_later(86400, transport.abort)",
        because="Who connects and says nothing must not be held for ever.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line=", keepalive_timeout=IDLE_SECONDS)",
        without=", keepalive_timeout=86400)",
        because="Who asks no more must not be held for ever.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line="            timer.cancel()\n",
        without="            pass\n",
        because="A connection that is in use must not be cut after half a minute.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file=_LISTENER,
        line="                loop.call_later(PAUSE_SECONDS, self._resume, listening)\n",
        without="",
        because="A moment without descriptors must not be the end of all that listens.",
        tests=_BY_LISTENER,
        may_hang=True,
    ),
    Guard(
        file=_LISTENER,
        line="Shares(affordable(connections))",
        without="Shares(connections)",
        because="Peers must not have the descriptors that the work itself needs.",
        tests=_BY_LISTENER,
    ),
    Guard(
        file=_LISTENER,
        line=", auto_decompress=False",
        without="",
        because="A few KB that unfold into gigabytes must not fill the memory.",
        tests=_BY_SERVER,
    ),
    Guard(
        file="controlplane/virt_api/server.py",
        line="            charge(len(chunk))\n",
        without="",
        because="Bodies that nobody counts fill the memory.",
        tests=_BY_SERVER,
    ),
)
