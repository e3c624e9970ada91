# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of a Node's processor and boards, with upstream's names, and the labels that a guest's target needs. Pure.

A node that emulates has the labels of CPU models and boards only: no guest there has the node's processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controlplane.api.schema.bounds import LABEL_PART
from controlplane.api.schema.patterns import matches

HOST_MODEL, HOST_PASSTHROUGH = "host-model", "host-passthrough"
MODEL = "cpu-model.node.kubevirt.io/"
"""A guest with this named CPU model can run on the node."""
MIGRATION = "cpu-model-migration.node.kubevirt.io/"
"""A guest with the host model of a node of this model can migrate to the node."""
FEATURE = "cpu-feature.node.kubevirt.io/"
OF_HOST = "host-model-cpu.node.kubevirt.io/"
"""libvirt's CPU model that is closest to the node's processor."""
REQUIRED = "host-model-required-features.node.kubevirt.io/"
"""A feature of the node's processor that this model lacks."""
VENDOR = "cpu-vendor.node.kubevirt.io/"
MACHINE = "machine-type.node.kubevirt.io/"
"""A guest with this board can run on the node."""
PREFIXES = (MODEL, MIGRATION, FEATURE, OF_HOST, REQUIRED, VENDOR, MACHINE)
PINNING = (MIGRATION, FEATURE, OF_HOST)
"""Labels in the node selector of a migrated guest's Pod. They describe the CPU that the guest started with."""
_IS = "true"


class UnknownProcessorError(ValueError):
    """The guest uses its node's processor, and the node has no labels for it."""


def label_processor(
    *,
    model: str,
    vendor: str,
    models: Iterable[str],
    required: Iterable[str],
    features: Iterable[str],
    machines: Iterable[str] = (),
) -> dict[str, str]:
    """Return the labels of a Node with this processor. model: "" if no guest there has the node's processor.

    machines: QEMU's names of the boards that guests can have there.
    """
    usable = {*models}
    keys = (
        *(MODEL + name for name in usable),
        *(MIGRATION + name for name in {*usable, model} if model),
        *(FEATURE + name for name in {*features, *required}),
        *(REQUIRED + name for name in required),
        OF_HOST + model,
        VENDOR + vendor,
        *(MACHINE + name for name in machines if matches(LABEL_PART, name)),
    )
    return {name: _IS for name in sorted(keys) if not name.endswith("/")}


def of_processor(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels about processor and boards."""
    return {name: value for name, value in labels.items() if name.startswith(PREFIXES)}


def needed_at_target(
    model: str, *, own: Mapping[str, str], of_pod: Mapping[str, str], of_node: Mapping[str, str]
) -> dict[str, str]:
    """Return the labels that a migration's target node must have. UnknownProcessorError.

    model: the CPU model in the instance's spec. own: the instance's node selector. of_pod: the node selector of its
    current Pod. of_node: labels of its current node. A guest that was migrated before keeps the processor of its first
    node: its Pod's selector has the labels. Otherwise it could not go back.
    """
    if model not in ("", HOST_MODEL, HOST_PASSTHROUGH):
        return of_model(model)
    pinned = {name: value for name, value in of_pod.items() if name not in own and name.startswith(PINNING)}
    if any(name.startswith(MIGRATION) for name in pinned):
        return pinned
    host = sorted(name.removeprefix(OF_HOST) for name in of_node if name.startswith(OF_HOST))
    if not host:
        raise UnknownProcessorError("its node does not say which processor the guest has: it has no label " + OF_HOST)
    required = (name.removeprefix(REQUIRED) for name in of_node if name.startswith(REQUIRED))
    return {
        MIGRATION + host[0]: _IS,
        **{FEATURE + name: _IS for name in required},
        **({OF_HOST + host[0]: _IS} if model == HOST_PASSTHROUGH else {}),
    }


def of_model(model: str) -> dict[str, str]:
    """Return the label that the node of a guest with this CPU model must have; none if every processor will do."""
    is_named = model not in ("", HOST_MODEL, HOST_PASSTHROUGH)
    return {MODEL + model: _IS} if is_named and matches(LABEL_PART, model) else {}
