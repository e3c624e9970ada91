# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates: what cannot be read is an answer, and nothing is taken away before everybody has the next."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_KUBE = "controlplane/kube/certificates.py"
_DECIDE = "controlplane/virt_controller/certificates/decide.py"
_FAULTS = "controlplane/virt_controller/certificates/faults.py"
_APPLY = "controlplane/virt_controller/certificates/apply.py"
_RUN = "controlplane/virt_controller/certificates/run.py"
_OBSERVE = "controlplane/virt_controller/certificates/observe.py"
_STANDING = "controlplane/virt_controller/certificates/standing.py"
_BY_KUBE = (
    "tests/controlplane/kube/test_certificates.py",
    "tests/controlplane/virt_controller/certificates/test_decide.py",
    "tests/controlplane/virt_controller/certificates/test_run.py",
)
_BY_DECIDE = ("tests/controlplane/virt_controller/certificates/test_decide.py",)
_BY_RUN = ("tests/controlplane/virt_controller/certificates/test_run.py",)
_BY_STANDING = ("tests/controlplane/virt_controller/certificates/test_standing.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_RUN,
        line="            return self._refused.fail(self._key)",
        without="            return RETRY_SECONDS",
        because="What the API server refuses for good would be written 720 times an hour.",
        tests=("tests/controlplane/virt_controller/certificates/test_run.py",),
    ),
    Guard(
        file=_RUN,
        line="            return self._stale.fail(self._key)",
        without="            return STALE_SECONDS",
        because="A conflict that lasts, with a watch that stands still, would be met twice a second.",
        tests=("tests/controlplane/virt_controller/certificates/test_run.py",),
    ),
    Guard(
        file=_RUN,
        line="        self._stale.forget(self._key)\n        self._refused.forget(self._key)\n",
        without="",
        because="The first refusal of tomorrow would be waited for as the last one of today.",
        tests=("tests/controlplane/virt_controller/certificates/test_run.py",),
    ),
    Guard(
        file=_KUBE,
        line='        return "KeyPair(...)"',
        without='        return f"KeyPair({self.certificate!r}, {self.key!r})"',
        because="A private key must not get into a log.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="            if is_authority(certificate):\n                return KeyPair",
        without="            if True:\n                return KeyPair",
        because="What a certificate signs that is no authority's, no API server trusts.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="            not _is_verifiable(parsed.public_key())\n            or not",
        without="            not",
        because="A certificate that API servers cannot parse makes them refuse the whole bundle.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="    if len(bundle) > MOST_BYTES or bundle.count(_BEGIN) > MOST_CERTIFICATES:",
        without="    if False:",
        because="A trust store in the Secret would hold up the leader until its Lease is over.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="islice(_blocks(bundle[:MOST_BYTES]), MOST_CERTIFICATES)",
        without="islice(_blocks(bundle[:MOST_BYTES]), None)",
        because="A trust store in a bundle would hold up the leader until its Lease is over.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="islice(_blocks(bundle[:MOST_BYTES]), MOST_CERTIFICATES)",
        without="islice(_blocks(bundle), MOST_CERTIFICATES)",
        because="A bundle without end would hold up the leader until its Lease is over.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="    if len(pem) > MOST_KEY_BYTES:",
        without="    if False:",
        because="To check a key of any length would hold up the leader until its Lease is over.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="@lru_cache(maxsize=16)",
        without="@lru_cache(maxsize=0)",
        because="To check a key takes a third of a second, and it is asked for several times in a pass.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="min(lifetime, left)",
        without="lifetime",
        because="A certificate that outlives its authority is trusted by nobody at its end.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="x509.BasicConstraints(ca=False, path_length=None)",
        without="x509.BasicConstraints(ca=True, path_length=None)",
        because="A serving pair must not be able to sign.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="x509.BasicConstraints(ca=True, path_length=0)",
        without="x509.BasicConstraints(ca=True, path_length=None)",
        because="Our authority signs leaf certificates only.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="x509.ExtendedKeyUsage(_USAGES[subject.usage])",
        without="x509.ExtendedKeyUsage([_SERVER, _CLIENT])",
        because="One key pair per role and direction: a serving pair must not speak as a client.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="return key.key_size >= SMALLEST_RSA_BITS",
        without="return True",
        because="A key that API servers refuse must not sign.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="for certificate in certificates if not life(certificate).is_over(now))",
        without="for certificate in certificates)",
        because="A bundle must not grow by authorities that have ended.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_KUBE,
        line="        .not_valid_before(begins - SKEW)",
        without="        .not_valid_before(begins)",
        because="A node whose clock is behind must not refuse a fresh certificate.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_DECIDE,
        line="for held in missing if world.verifiers)",
        without="for held in missing)",
        because="What a removal has taken away must not come back.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    keep = _trusted((*split(held.pair.certificate), *_handed_out(world)), world.now)",
        without="    keep = _trusted(split(held.pair.certificate), world.now)",
        because="A deleted CA Secret must not cut off what still trusts the old authority.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    keep = _trusted((*split(held.pair.certificate), *_handed_out(world)), world.now)",
        without="    keep = ()",
        because="A new authority must not cut off what still trusts the old one.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="not life(one).is_over(now) and is_authority(one))",
        without="not life(one).is_over(now))",
        because="A certificate that is no authority's must not be handed out as one.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    return tuple(living)[:MOST_KEPT]",
        without="    return tuple(living)",
        because="A bundle must not be filled without end.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_FAULTS,
        line="    return max(0.0, SETTLE_SECONDS - seen_for, SETTLE_SECONDS - age)",
        without="    return max(0.0, SETTLE_SECONDS - seen_for)",
        because="A new leader must not take away what the last one has only just handed out.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_FAULTS,
        line="    return max(0.0, SETTLE_SECONDS - seen_for, SETTLE_SECONDS - age)",
        without="    return max(0.0, SETTLE_SECONDS - age)",
        because="A bundle that was changed a moment ago is not with everybody yet.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_FAULTS,
        line="    if not is_of(pair.certificate, subject):",
        without="    if False:",
        because="A certificate for other names is refused by every API server, and one of another role lends it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_FAULTS,
        line="    if life(pair.certificate).is_over(now):",
        without="    if False:",
        because="A certificate that has ended must be replaced at once.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_FAULTS,
        line="    return bool(split(pair.certificate)) and belongs_together(pair)",
        without="    return bool(split(pair.certificate))",
        because="A pair whose key is another's cannot be served with.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_KUBE,
        line="set(names) == set(_alternatives(subject)) and",
        without="",
        because="One role must not be taken for another.",
        tests=_BY_KUBE,
    ),
    Guard(
        file=_DECIDE,
        line="        return (*self.verifiers, *holders)",
        without="        return self.verifiers",
        because="Not only API servers verify us: who holds a pair has to trust its peers before they have the next.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="        if (each.resource, each.key) not in written",
        without="        if True",
        because="Two writes of one Secret in a pass are one write and a conflict.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_APPLY,
        line=(
            'data = {"ca.crt": _encoded(bundle), "ca.key": _encoded(made.key)}\n'
            '            await api.patch(SECRET, action.held.key, {"data": data}, '
            "resource_version=action.held.version)"
        ),
        without=(
            'data = {"ca.crt": _encoded(bundle), "ca.key": _encoded(made.key)}\n'
            '            await api.patch(SECRET, action.held.key, {"data": data})'
        ),
        because="Two leaders must not make two authorities, one over the other.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_APPLY,
        line=(
            '"tls.key": _encoded(pair.key)}\n'
            '            await api.patch(SECRET, action.held.key, {"data": data}, '
            "resource_version=action.held.version)"
        ),
        without=(
            '"tls.key": _encoded(pair.key)}\n            await api.patch(SECRET, action.held.key, {"data": data})'
        ),
        because="A pair that somebody put there meanwhile must not be written over.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_APPLY,
        line="patch, resource_version=verifier.version)",
        without="patch)",
        because="Hooks that were changed meanwhile must not be put back.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_RUN,
        line="        except Exception:\n            log.exception(",
        without="        except ZeroDivisionError:\n            log.exception(",
        because="A CA that breaks the keeper must not end the process.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_RUN,
        line="            await self._sleep(self._back_off.fail(self._key))",
        without="            self._back_off.fail(self._key)",
        because="A bug that comes back with each change must not spin.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_OBSERVE,
        line='    except ValueError:\n        return b""',
        without='    except ZeroDivisionError:\n        return b""',
        because="A Secret that holds no base64 holds nothing, and ends no process.",
        tests=_BY_RUN,
    ),
    Guard(
        file=_STANDING,
        line="    if known != value:\n            since",
        without="    if False:\n            since",
        because="What has just changed has not settled.",
        tests=_BY_STANDING,
    ),
    Guard(
        file=_KUBE,
        line="        return missing.oid == x509.KeyUsage.oid",
        without="        return True",
        because="A certificate that does not say that it is an authority's would sign pairs that nobody verifies.",
        tests=_BY_KUBE[:1],
    ),
)
