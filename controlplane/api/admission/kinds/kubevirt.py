# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of KubeVirt."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import timedelta

from controlplane.api import go_duration
from controlplane.api.admission.problem import Problem, excerpt, key
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.compute import MOST_MAX_GUEST
from controlplane.api.certificate_lifetimes import AUTHORITY, PAIR, lifetimes
from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import BLOCK_BYTES, LEAST_BYTES
from controlplane.api.objects.kubevirt import (
    TLS12,
    TLS13,
    CertConfig,
    KubeVirtConfiguration,
    KubeVirtSelfSignConfiguration,
    KubeVirtSpec,
    SeccompConfiguration,
    TLSConfiguration,
)
from controlplane.api.objects.kubevirt_settings import (
    LEAST_CONTAINER_DISK,
    MOST_CONTAINER_DISK,
    PARSERS,
    SETTINGS,
    malformed_settings,
)
from controlplane.api.objects.meta import ObjectMeta, Quantity
from controlplane.api.tls_ciphers import OPENSSL_NAMES, WITHOUT_EFFECT

OUR_PREFIX = "virtops.kubevirt/"
LEAST_LIFETIME, MOST_LIFETIME = 900.0, 315_360_000.0
"""Seconds of a certificate's lifetime: the shortest leaves time to distribute a new CA, the longest is ten years."""
LEAST_RENEWAL = 300.0
"""Seconds between the renewal of a certificate and its begin or end."""
MAX_INTERVAL = 86400.0
"""Seconds between two batches of evictions."""


def _warn(kubevirt: Json) -> Iterator[str]:
    configuration = kubevirt["spec"].get("configuration")
    developer = configuration.get("developerConfiguration") if isinstance(configuration, dict) else None
    if isinstance(developer, dict) and developer.get("featureGates"):
        yield "developerConfiguration.featureGates: no feature gate is known to this version, all are ignored."
    verbosity = developer.get("logVerbosity") if isinstance(developer, dict) else None
    if isinstance(verbosity, dict) and verbosity.get("virtOperator"):
        yield "developerConfiguration.logVerbosity.virtOperator: ignored, this control plane has no virt-operator."
    for annotation, setting in SETTINGS.items():
        if isinstance(configuration, dict) and configuration.get(setting.field) is not None:
            yield (
                f"spec.configuration.{setting.field}: KubeVirt has no such field, so a client of KubeVirt that writes "
                f"the whole object drops it; set the annotation {annotation} instead, which overrides it."
            )


def _check_settings(meta: ObjectMeta, before: ObjectMeta) -> Iterator[Problem]:
    """Check our settings. Values from before the write are not checked again."""
    for name, text in malformed_settings(meta.annotations):
        value = meta.annotations[name]
        if value != before.annotations.get(name):
            yield Problem(key("metadata.annotations", name), f"{excerpt(value)} {text}; correct or remove it")
    for name in sorted(set(meta.annotations) - set(before.annotations) - set(PARSERS)):
        if name.startswith(OUR_PREFIX):
            close = difflib.get_close_matches(name[:64], PARSERS, n=1, cutoff=0.8)
            text = f"no such setting; {f'did you mean {close[0]}?' if close else 'remove it'}"
            yield Problem(key("metadata.annotations", name), text, "FieldValueNotSupported")


def _check(spec: KubeVirtSpec, _unused: KubeVirtConfiguration) -> Iterator[Problem]:
    yield from _check_container_disks(spec)
    rate = spec.configuration.migrations.bandwidth_per_migration
    yield from check_bandwidth(rate, "spec.configuration.migrations.bandwidthPerMigration")
    yield from _check_most_memory(spec.configuration.live_update_configuration.max_guest)
    yield from _check_workload_updates(spec)
    yield from _check_ciphers(spec.configuration.tls_configuration)
    yield from _check_certificates(spec.certificate_rotate_strategy.self_signed)
    yield from _check_seccomp(spec.configuration.seccomp_configuration)


def _check_most_memory(amount: Quantity | None) -> Iterator[Problem]:
    """Check the default of memory.maxGuest: every machine without one gets it, and could not start with a bad one."""
    try:
        size = None if amount is None else quantity.to_bytes(amount)
    except quantity.QuantityError:  # fields.py reports it
        return
    if size is not None and not (LEAST_BYTES <= size <= MOST_MAX_GUEST and size % BLOCK_BYTES == 0):
        where = "spec.configuration.liveUpdateConfiguration.maxGuest"
        yield Problem(where, f"{excerpt(amount)} is out of range; must be from 1Gi to 16Ti, in whole 2Mi")


def _check_container_disks(spec: KubeVirtSpec) -> Iterator[Problem]:
    limit = spec.configuration.container_disk_limit
    try:
        size = quantity.to_bytes(limit)
    except quantity.QuantityError:  # fields.py reports it
        return
    if not LEAST_CONTAINER_DISK <= size <= MOST_CONTAINER_DISK:
        where = "spec.configuration.containerDiskLimit"
        yield Problem(where, f"{excerpt(limit)} is out of range; must be from 1Mi to 64Ti")


def check_bandwidth(rate: Quantity, where: str) -> Iterator[Problem]:
    """Refuse a negative bandwidth. It is a quantity, so its type does not limit it."""
    try:
        size = quantity.to_bytes(rate)
    except quantity.QuantityError:  # fields.py reports it
        return
    if size < 0:
        yield Problem(where, f"{excerpt(rate)} is negative; must be 0 (no bound) or bytes in a second, e.g. 64Mi")


def _check_workload_updates(spec: KubeVirtSpec) -> Iterator[Problem]:
    where, interval = (
        "spec.workloadUpdateStrategy.batchEvictionInterval",
        spec.workload_update_strategy.batch_eviction_interval,
    )
    seconds = go_duration.seconds(interval)
    if interval and (seconds is None or not 0 <= seconds <= MAX_INTERVAL):
        yield Problem(where, f"{excerpt(interval)} is no time from 0s to 24h; write e.g. 1m30s")


def _check_certificates(config: KubeVirtSelfSignConfiguration) -> Iterator[Problem]:
    """Check the lifetimes of certificates: each has to be renewed in time, and what a CA issues ends with it."""
    where = "spec.certificateRotateStrategy.selfSigned"
    problems = [
        *_check_lifetime(config.ca, f"{where}.ca", AUTHORITY.duration),
        *_check_lifetime(config.server, f"{where}.server", PAIR.duration),
    ]
    yield from problems
    asked = lifetimes(config)
    if not problems and asked.pair.duration > asked.authority.duration:
        text = f"server's {asked.pair.duration} is longer than ca's {asked.authority.duration}; shorten server.duration"
        yield Problem(where, text, "FieldValueNotSupported")


def _check_lifetime(config: CertConfig, where: str, default: timedelta) -> Iterator[Problem]:
    duration = default.total_seconds() if not config.duration else go_duration.seconds(config.duration)
    if duration is None or not LEAST_LIFETIME <= duration <= MOST_LIFETIME:
        yield Problem(f"{where}.duration", f"{excerpt(config.duration)} is no time from 15m to 87600h; write e.g. 48h")
        return
    before = go_duration.seconds(config.renew_before)
    if config.renew_before and (before is None or not LEAST_RENEWAL <= before <= duration - LEAST_RENEWAL):
        text = f"{excerpt(config.renew_before)} is no time from 5m to 5m less than the duration; write e.g. 24h"
        yield Problem(f"{where}.renewBefore", text)


def _check_seccomp(config: SeccompConfiguration) -> Iterator[Problem]:
    profile = config.virtual_machine_instance_profile
    custom = None if profile is None else profile.custom_profile
    if custom is None or custom.localhost_profile is None:
        return
    where = "spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile"
    if custom.runtime_default_profile:
        yield Problem(where, "has localhostProfile and runtimeDefaultProfile; remove one of them")
    if not custom.localhost_profile or custom.localhost_profile.startswith("/") or ".." in custom.localhost_profile:
        text = f"{excerpt(custom.localhost_profile)} is no path below the kubelet's directory of seccomp profiles"
        yield Problem(f"{where}.localhostProfile", f"{text}; write e.g. profiles/launcher.json")


def _check_ciphers(tls: TLSConfiguration) -> Iterator[Problem]:
    """Check that TLS 1.2 can still be used: without a suite that fits our keys, it is off and nobody has said so."""
    where = "spec.configuration.tlsConfiguration.ciphers"
    if not tls.ciphers:
        return
    if tls.min_tls_version != TLS12:
        text = f"they are of TLS 1.2 only; set minTLSVersion to {TLS12}, or remove them"
        yield Problem(where, text, "FieldValueNotSupported")
        return
    unknown = [number for number, name in enumerate(tls.ciphers) if name not in {*OPENSSL_NAMES, *WITHOUT_EFFECT}]
    for number in unknown:
        yield Problem(f"{where}[{number}]", _unknown_cipher(tls.ciphers[number]), "FieldValueNotSupported")
    if not unknown and not OPENSSL_NAMES.keys() & {*tls.ciphers}:
        text = (
            "none of them is for the ECDSA keys of the control plane's certificates; add one, e.g. "
            f"{next(iter(OPENSSL_NAMES))}, or set minTLSVersion to {TLS13}"
        )
        yield Problem(where, text, "FieldValueNotSupported")


def _unknown_cipher(name: str) -> str:
    close = difflib.get_close_matches(name[:64].upper(), [*OPENSSL_NAMES, *sorted(WITHOUT_EFFECT)], n=1, cutoff=0.8)
    hint = f"did you mean {close[0]}?" if close else f"use IANA names, e.g. {next(iter(OPENSSL_NAMES))}"
    return f"{excerpt(name)} is not a valid cipher; {hint}"


RULES = Rules(spec=_check, metadata=_check_settings, warn=_warn)
