# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pod that a migration goes to: a launcher Pod as any other, beside what ties it to its source. Pure.

Its images are the very ones that the source has, as far as the source's kubelet says which those are: under a tag there
may be another one by now, and a guest would go on with another disk below it.
"""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.claim import Claims
from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.migration.world import World
from controlplane.virt_controller.vmi.launcher_pod import Target, build_launcher_pod

Json = dict[str, Any]


def build_target_pod(
    world: World, *, image: str, image_pull_secrets: tuple[str, ...], claims: Claims, kept_from: frozenset[str]
) -> Json:
    """Build the Pod. ValueError names what in the VMI cannot be built. image: of the launcher, the newest."""
    vmi, migration = world.vmi, world.migration
    if vmi is None:
        raise ValueError("its instance is gone")
    built = build_launcher_pod(
        vmi,
        attempt=max(vmi.status.attempt, 1),
        image=image,
        image_pull_secrets=image_pull_secrets,
        configuration=world.configuration,
        claims=claims,
        kept_from=kept_from,
        target=Target(
            pod_name=world.target_pod,
            migration=migration.metadata.name,
            migration_uid=world.uid,
            node_selector=migration.spec.added_node_selector,
        ),
    )
    source = next((one for one in world.launchers if one.uid in vmi.status.active_pods), None)
    return built if source is None else _pinned(built, source)


def _pinned(body: Json, source: Pod) -> Json:
    digests = source.image_digests
    for volume in body["spec"]["volumes"]:
        if "image" in volume and volume["name"] in digests:
            volume["image"] = {**volume["image"], "reference": digests[volume["name"]]}
    return body
