# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks that step: what they leave behind is mended, cuts nobody off, and is not made over and over."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/certificates/decide.py"
_FAULTS = "controlplane/virt_controller/certificates/faults.py"
_APPLY = "controlplane/virt_controller/certificates/apply.py"
_RUN = "controlplane/virt_controller/certificates/run.py"
_STANDING = "controlplane/virt_controller/certificates/standing.py"
_PAIRS = "controlplane/virt_api/pairs.py"
_TLS = "controlplane/virt_api/tls.py"
_CLUSTER = "controlplane/virt_api/cluster.py"
_OWN_PAIR = "controlplane/virt_handler/own_pair.py"
_BY_CLOCK = ("tests/controlplane/virt_controller/certificates/test_clock.py",)
_BY_RUN = ("tests/controlplane/virt_controller/certificates/test_run.py",)
_BY_PAIRS = ("tests/controlplane/virt_api/test_pairs.py",)
_BY_DOOR = ("tests/controlplane/virt_handler/test_door.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_DECIDE,
        line="    if is_early(found.certificate, world.now) and is_ours(found.certificate, namespace):",
        without="    if False:",
        because="An authority that begins next year would issue what nobody takes until then.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line=" and is_ours(found.certificate, namespace):",
        without=":",
        because="An authority that somebody put there for later would be thrown away.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_FAULTS,
        line=" or {one.oid for one in parsed.extensions} != _OURS:",
        without=":",
        because="An authority that somebody made and named as ours is would be thrown away.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_FAULTS,
        line="get_extension_for_class(x509.BasicConstraints).value.path_length == 0",
        without="get_extension_for_class(x509.BasicConstraints).value.ca",
        because="An authority that somebody made and named as ours is would be thrown away.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_FAULTS,
        line="    if not parsed.subject == parsed.issuer == name or",
        without="    if",
        because="An authority that somebody made by the same means would be thrown away.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line="        if (rest := SETTLE_SECONDS - world.authority_for) > 0:",
        without="        if (rest := 0.0) > 0:",
        because="A clock that swings would make an authority every few seconds, until none in the bundle is in use.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_STANDING,
        line='        authority_for=standing.seconds("authority", world.authority.pair, monotonic),\n',
        without="",
        because="A clock that swings would make an authority every few seconds, until none in the bundle is in use.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line="    if is_early(pair.certificate, now):\n",
        without="    if False:\n",
        because="A pair that begins in months would be served with until then, and taken by nobody.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line='        return "the certificate has not begun" if one.used_for >= SETTLE_SECONDS else ""',
        without='        return "the certificate has not begun"',
        because="A clock that swings would have every pair issued every few seconds.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line="            waits += (SETTLE_SECONDS - one.used_for, settles_in(",
        without="            waits += (settles_in(",
        because="What has not begun would be mended whenever something else is due.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_FAULTS,
        line="    return life(certificate).begins > now + SKEW.total_seconds()",
        without="    return life(certificate).begins > now",
        because="Two leaders whose clocks differ by seconds would make each other's certificates anew.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line="    return life(pair.certificate).ends if is_usable(pair) and is_early(pair.certificate, now) else 0.0",
        without="    return 0.0",
        because="A leader whose clock is behind would exchange pairs that count for ones that have ended.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_DECIDE,
        line='"the authority has not begun", ends=life(found.certificate).ends)',
        without='"the authority has not begun")',
        because="A leader whose clock is behind would exchange an authority that counts for one that has ended.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_APPLY,
        line="_at_least(PAIR_LIFE, action.ends - now)",
        without="PAIR_LIFE",
        because="A leader whose clock is behind would exchange pairs that count for ones that have ended.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_FAULTS,
        line=(
            "    return min(known.renew_at(), known.begins + SKEW.total_seconds() + RENEW_AT * usual.total_seconds())"
        ),
        without="    return known.renew_at()",
        because="A clock that was ten years ahead for a moment would leave keys that are used for ten years.",
        tests=_BY_CLOCK,
    ),
    Guard(
        file=_RUN,
        line="min(plan.look_again_in, LOOK_SECONDS)",
        without="plan.look_again_in",
        because="That a clock was set right would be noticed a day later.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_RUN,
        line="        if waiting and waiting != self._waiting:",
        without="        if False:",
        because="Whoever put an authority there would not learn why it is not used.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_PAIRS,
        line="(self._is_valid(self._next) or not self._is_valid(self._used)):",
        without="True:",
        because="Of its two pairs virt-api would exchange a pair that clients take for one that they do not.",
        tests=_BY_PAIRS,
    ),
    Guard(
        file=_PAIRS,
        line=" or not self._is_valid(self._used)):",
        without="):",
        because="Of its two pairs virt-api would stay with a pair that has ended.",
        tests=_BY_PAIRS,
    ),
    Guard(
        file=_PAIRS,
        line="        return known.begins <= self._now() < known.ends",
        without="        return self._now() < known.ends",
        because="Of its two pairs virt-api would exchange a pair that clients take for one that they do not take yet.",
        tests=_BY_PAIRS,
    ),
    Guard(
        file=_TLS,
        line="{pair: self._make(pair, authority) for pair in self._pairs.known}",
        without="{pair: self._make(pair, authority) for pair in self._pairs.known[:1]}",
        because="When the pair that waits comes into use, no handshake would be answered any more.",
        tests=_BY_PAIRS,
    ),
    Guard(
        file=_CLUSTER,
        line="        return self.client_pairs.current",
        without="        return self.client_pairs.known[-1] if self.client_pairs.known else None",
        because="No virt-handler would answer until the pair that waits begins.",
        tests=_BY_PAIRS,
    ),
    Guard(
        file=_OWN_PAIR,
        line='BEGINS, ENDS = "1970-01-01T00:00:00Z",',
        without='BEGINS, ENDS = "2025-01-01T00:00:00Z",',
        because="A node's clock that was wrong for a moment would keep its virt-handler from being asked for good.",
        tests=_BY_DOOR,
    ),
)
