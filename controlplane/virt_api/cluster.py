# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-api watches in the cluster: its key pairs, the front proxy, the configuration."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controlplane.api.admission.verdict import Settings as AdmissionSettings
from controlplane.api.objects.data_volume import DEFINITION, is_served
from controlplane.api.objects.decode import DecodeError, decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirt, KubeVirtConfiguration
from controlplane.api.objects.kubevirt_settings import console_origins, effective_configuration
from controlplane.api.objects.resources import CUSTOM_RESOURCE_DEFINITION, KUBEVIRT, SECRET, Key, Resource
from controlplane.engine.ports import Cache, Clock
from controlplane.kube.client import Client, Selection
from controlplane.kube.watch import WatchCache
from controlplane.tls.certificates import KeyPair
from controlplane.tls.policy import tls_policy
from controlplane.virt_api.http.identity import FrontProxy, parse_front_proxy
from controlplane.virt_api.http.key_pairs import KeyPairInUse
from controlplane.virt_api.http.tls import ServingTls, TlsError
from controlplane.virt_api.settings import CLIENT_SECRET_NAME, SECRET_NAME

log = logging.getLogger(__name__)

CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
SYNC_SECONDS = 5.0
"""How long to wait for the caches: without them admission uses defaults and subresources respond 401."""
AUTHENTICATION = Key("kube-system", "extension-apiserver-authentication")


@dataclass(slots=True)
class Cluster:
    """The current state, changed by the callbacks of small caches."""

    namespace: str
    tls: ServingTls = field(default_factory=ServingTls)
    front_proxy: FrontProxy | None = None
    configuration: KubeVirtConfiguration = field(default_factory=KubeVirtConfiguration)
    console_origins: frozenset[str] = frozenset()
    """Origins of web pages that may open streams."""
    config_version: str = ""
    """The resourceVersion of the KubeVirt object that the configuration is of; "" without one."""
    followers: list[Callable[[KubeVirtConfiguration], None]] = field(default_factory=list)
    """Called with each new configuration."""
    client_pairs: KeyPairInUse = field(default_factory=KeyPairInUse)
    has_pair: asyncio.Event = field(default_factory=asyncio.Event)

    definition: WatchCache | None = None
    """The CRD of DataVolumes: tells whether the cluster serves them."""

    @property
    def client_pair(self) -> KeyPair | None:
        """The pair that we show to virt-handlers."""
        return self.client_pairs.current

    def admission_settings(self) -> AdmissionSettings:
        return AdmissionSettings(
            self.namespace, self.configuration, serves_data_volumes=serves_data_volumes(self.definition)
        )

    def caches(self, client: Client, clock: Clock) -> tuple[WatchCache, ...]:
        """Create the caches; each must be run."""
        pair = WatchCache(client, _only(SECRET, Key(self.namespace, SECRET_NAME)), clock)
        pair.subscribe(self.take_pair)
        client_pair = WatchCache(client, _only(SECRET, Key(self.namespace, CLIENT_SECRET_NAME)), clock)
        client_pair.subscribe(self.take_client_pair)
        proxy = WatchCache(client, _only(CONFIG_MAP, AUTHENTICATION), clock)
        proxy.subscribe(self.take_authentication)
        configuration = WatchCache(client, Selection(KUBEVIRT, self.namespace), clock)
        configuration.subscribe(self.take_configuration)
        self.definition = WatchCache(client, _only(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION)), clock)
        return pair, client_pair, proxy, configuration, self.definition

    def take_pair(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Serve with the Secret's pair; an empty or invalid Secret changes nothing."""
        del before
        pair = _pair(_data(after))
        if pair is None:
            log.info("the Secret holds no serving pair yet", extra={"key": key})
            return
        try:
            is_used = self.tls.use_pair(pair)
            self.has_pair.set()
            _log_pair(key, is_used=is_used)
        except TlsError as error:
            log.error("serving pair refused, the old one stays", extra={"key": key, "because": error})

    def take_client_pair(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Show the Secret's pair to virt-handlers; an empty or invalid Secret changes nothing."""
        del before
        pair = _pair(_data(after))
        if pair is None:
            log.info("the Secret holds no client pair for virt-handlers yet", extra={"key": key})
            return
        _log_pair(key, is_used=self.client_pairs.take(pair))

    def take_authentication(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Trust the front proxy that the ConfigMap describes, or none."""
        del before
        proxy = parse_front_proxy({name: value for name, value in _data(after).items() if isinstance(value, str)})
        if proxy is None:
            log.warning("no usable front-proxy configuration; subresources respond 401", extra={"key": key})
        try:
            self.tls.use_authority(proxy.authority if proxy is not None else b"")
            self.front_proxy = proxy
        except TlsError as error:
            self.front_proxy = None
            log.error("front-proxy CA refused", extra={"key": key, "because": error})

    def take_configuration(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Use the configuration of the KubeVirt object; without one, the defaults."""
        del before
        try:
            kubevirt = decode_kubevirt(after) if after else KubeVirt()
        except DecodeError as error:
            log.error("configuration cannot be read, the old one stays", extra={"key": key, "because": error})
            return
        self.configuration = effective_configuration(kubevirt)
        self.console_origins = console_origins(kubevirt)
        self.tls.use_policy(tls_policy(self.configuration.tls_configuration))
        for follow in self.followers:
            follow(self.configuration)
        self.config_version = kubevirt.metadata.resource_version


def serves_data_volumes(definition: Cache | None) -> bool | None:
    """Tell whether the cluster serves DataVolumes; None while the watch of their CRD is not synced."""
    if definition is None or not definition.synced:
        return None
    return is_served(definition.get(Key("", DEFINITION)))


async def wait_ready(cluster: Cluster, caches: Iterable[WatchCache]) -> None:
    """Return when there is a serving pair and the caches are synced, or SYNC_SECONDS after the pair."""
    await cluster.has_pair.wait()
    with suppress(TimeoutError):
        async with asyncio.timeout(SYNC_SECONDS):
            for cache in caches:
                await cache.wait_synced()


def _log_pair(key: Key, *, is_used: bool) -> None:
    if is_used:
        log.info("pair loaded", extra={"key": key})
    else:
        log.warning("pair is not valid now, the old one stays until it is", extra={"key": key})


def _only(resource: Resource, key: Key) -> Selection:
    """Select one object by name: a role with resourceNames allows to list and watch it."""
    return Selection(resource, key.namespace, field_selector=f"metadata.name={key.name}")


def _data(raw: bytes | None) -> dict[str, Any]:
    data = msgspec.json.decode(raw).get("data") if raw is not None else None
    return data if isinstance(data, dict) else {}


def _pair(data: dict[str, Any]) -> KeyPair | None:
    try:
        pair = KeyPair(base64.b64decode(data.get("tls.crt", "")), base64.b64decode(data.get("tls.key", "")))
    except (binascii.Error, TypeError):
        return None
    return pair if pair.certificate and pair.key else None
