# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selects the MigrationPolicy of a migration and merges its settings. Pure, except that it may read a namespace.

A policy matches if the VMI and its namespace have all labels of its selectors. The policy with the most labels wins;
then the one with the most VMI labels; then the first by name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.meta import Object
from controlplane.api.objects.migration_policy import MigrationPolicy
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import NAMESPACE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.ports import Api
from controlplane.engine.read_your_writes import ReadYourWritesCache

log = logging.getLogger(__name__)


def choose(
    policies: Iterable[MigrationPolicy], labels: Mapping[str, str], namespace: Mapping[str, str]
) -> MigrationPolicy | None:
    """Return the matching policy, if any. labels, namespace: labels of the VMI and of its namespace."""
    matching = [
        policy
        for policy in policies
        if policy.spec.selectors.virtual_machine_instance_selector.items() <= labels.items()
        and policy.spec.selectors.namespace_selector.items() <= namespace.items()
    ]
    return min(matching, key=_order, default=None)


def _order(policy: MigrationPolicy) -> tuple[int, int, str]:
    vmi_labels = len(policy.spec.selectors.virtual_machine_instance_selector)
    return -vmi_labels - len(policy.spec.selectors.namespace_selector), -vmi_labels, policy.metadata.name


def merge(policy: MigrationPolicy | None, settings: MigrationConfiguration) -> MigrationConfiguration:
    """Return the settings, overridden by those that the policy sets."""
    if policy is None:
        return settings
    overrides = {
        "bandwidth_per_migration": policy.spec.bandwidth_per_migration,
        "completion_timeout_per_gib": policy.spec.completion_timeout_per_gib,
        "allow_auto_converge": policy.spec.allow_auto_converge,
        "allow_workload_disruption": policy.spec.allow_workload_disruption,
    }
    return msgspec.structs.replace(settings, **{name: value for name, value in overrides.items() if value is not None})


class _Namespace(Object, frozen=True, kw_only=True):
    """The fields that are read."""

    resource = NAMESPACE


class Policies:
    """The MigrationPolicies in the cache."""

    def __init__(self, policies: ReadYourWritesCache, api: Api) -> None:
        self._policies = policies
        self._api = api

    @property
    def synced(self) -> bool:
        return self._policies.synced

    async def of(self, vmi: VirtualMachineInstance) -> MigrationPolicy | None:
        """Return the policy of a VMI. Reads its namespace if a policy selects by namespace labels."""
        policies, meta = self._readable(), vmi.metadata
        namespace: Mapping[str, str] = {}
        if any(policy.spec.selectors.namespace_selector for policy in policies):
            raw = await self._api.get(NAMESPACE, Key("", meta.namespace))
            namespace = decode(raw, _Namespace).metadata.labels
        return choose(policies, meta.labels, namespace)

    def _readable(self) -> list[MigrationPolicy]:
        policies = []
        for key in sorted(self._policies.keys()):
            raw = self._policies.get(key)
            try:
                policies += [] if raw is None else [decode(raw, MigrationPolicy)]
            except DecodeError as error:
                log.warning("policy skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
        return policies
