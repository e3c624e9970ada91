# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Prometheus operator's kind PodMonitor: the fields that our object uses, with the operator's types.

The operator's own definition is long. The server drops the fields that are missing here.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_LABELS = {"type": "object", "additionalProperties": _TEXT}
_SPEC = _object(
    ("selector",),
    selector=_object(matchLabels=_LABELS),
    podMetricsEndpoints=_list(
        _object(
            port=_TEXT,
            path=_TEXT,
            scheme={**_TEXT, "enum": ["http", "https", "HTTP", "HTTPS"]},
            tlsConfig=_object(insecureSkipVerify={"type": "boolean"}),
        )
    ),
)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podmonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _object(("spec",), spec=_SPEC)},
            }
        ],
    },
}
