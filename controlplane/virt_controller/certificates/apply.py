# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The writes of certificates, each on the observed version. It decides nothing."""

from __future__ import annotations

import base64
import logging
from datetime import timedelta
from typing import Protocol, assert_never

from controlplane.api.objects.resources import SECRET, Key, Resource
from controlplane.engine.ports import Api, Json
from controlplane.tls.certificates import issue, join_bundle, make_ca
from controlplane.virt_controller.certificates.decide import (
    Action,
    IssuePair,
    MakeAuthority,
    MakeSecret,
    PatchBundle,
)
from controlplane.virt_controller.certificates.faults import authority_name

log = logging.getLogger(__name__)


class EnsuringApi(Api, Protocol):
    """The engine's requests, and one that creates an empty object by name."""

    async def ensure(self, resource: Resource, key: Key) -> Json:
        """Create an empty object of this name; an existing object stays as it is."""


async def apply(api: EnsuringApi, action: Action, now: float) -> None:
    """Carry out one action. Raises ApiError: a Conflict if the object has changed since the decision."""
    match action:
        case MakeSecret():
            await api.ensure(SECRET, action.key)
            log.warning("created a Secret", extra={"key": action.key, "because": action.because})
        case MakeAuthority():
            ca = make_ca(
                authority_name(action.secret.key.namespace), now, _at_least(action.lifetime, action.ends - now)
            )
            bundle = join_bundle((ca.certificate, *action.keep), now)
            data = {"ca.crt": _encoded(bundle), "ca.key": _encoded(ca.key)}
            await api.patch(SECRET, action.secret.key, {"data": data}, resource_version=action.secret.version)
            level = logging.WARNING if action.is_loss else logging.INFO
            log.log(level, "created a CA", extra={"key": action.secret.key, "because": action.because})
        case IssuePair():
            pair = issue(action.authority, action.subject, now, _at_least(action.lifetime, action.ends - now))
            bundle_data = {} if action.bundle is None else {"ca.crt": _encoded(action.bundle)}
            data = {**bundle_data, "tls.crt": _encoded(pair.certificate), "tls.key": _encoded(pair.key)}
            await api.patch(SECRET, action.secret.key, {"data": data}, resource_version=action.secret.version)
            log.info("issued a key pair", extra={"key": action.secret.key, "because": action.because})
        case PatchBundle():
            await _patch_bundle(api, action)
            log.info("distributed the bundle", extra={"key": action.verifier.key, "because": action.because})
        case _:
            assert_never(action)


async def _patch_bundle(api: Api, action: PatchBundle) -> None:
    verifier, encoded = action.verifier, _encoded(action.bundle)
    patch: Json = {"spec": {"caBundle": encoded}}
    if verifier.resource == SECRET:
        patch = {"data": {"ca.crt": encoded}}
    elif verifier.resource.plural != "apiservices":
        # A merge patch replaces lists: it sends all hooks, and fails with a Conflict if they have changed.
        current = await api.get(verifier.resource, verifier.key)
        patch = {"webhooks": [_with_bundle(hook, encoded) for hook in current.get("webhooks") or ()]}
    await api.patch(verifier.resource, verifier.key, patch, resource_version=verifier.version)


def _with_bundle(hook: Json, encoded: str) -> Json:
    return {**hook, "clientConfig": {**(hook.get("clientConfig") or {}), "caBundle": encoded}}


def _at_least(usual: timedelta, seconds: float) -> timedelta:
    """Return the lifetime of a new certificate: it must not end before the one that it replaces."""
    return max(usual, timedelta(seconds=seconds))


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
