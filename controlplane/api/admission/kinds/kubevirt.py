# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of KubeVirt."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.rules import Json, Rules


def _warn(kubevirt: Json) -> Iterator[str]:
    configuration = kubevirt["spec"].get("configuration")
    developer = configuration.get("developerConfiguration") if isinstance(configuration, dict) else None
    if isinstance(developer, dict) and developer.get("featureGates"):
        yield "developerConfiguration.featureGates: no feature gate is known to this version, all are ignored."


RULES = Rules(warn=_warn)
