# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the role's files about our kinds: python -m controlplane.api.schema.generate_crds. A tool, not a service.

It writes the CRDs, and the list of kinds that the role's templates iterate over (webhooks, users' roles). Run it after
a change of a type or of the registry; a test compares the files. CRDs are JSON, because Ansible takes seconds to read
them as YAML, several times in each run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from controlplane.api.registry import KINDS, Kind
from controlplane.api.schema.crds import crd

ROLE_FILES = Path(__file__).parents[3] / "roles" / "control_plane" / "files"
FOLDER = ROLE_FILES / "crds"
LIST = ROLE_FILES / "kinds.yaml"
HEADER = "---\n# Generated from controlplane/api by: python -m controlplane.api.schema.generate_crds\n"


def render(document: Any) -> str:
    """Render a document as JSON, one value per line."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def render_yaml(document: Any) -> str:
    """Render a document as YAML."""
    return HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def files(kinds: tuple[Kind, ...] = KINDS) -> dict[Path, str]:
    """Return the content of each generated file."""
    definitions = {FOLDER / f"{kind.resource.plural}.json": render(crd(kind)) for kind in kinds}
    return {**definitions, LIST: render_yaml([_entry(kind) for kind in kinds])}


def _entry(kind: Kind) -> dict[str, Any]:
    """Return the fields of a kind that the role's templates use."""
    return {
        "plural": kind.resource.plural,
        "group": kind.resource.group,
        "version": kind.versions[0],
        "scope": "Namespaced" if kind.resource.namespaced else "Cluster",
        "is_mutated": kind.rules.default is not None,
        "is_users": kind.is_users,
        "own_role": kind.own_role,
        "is_scaled": kind.scale is not None,
    }


class _Dumper(yaml.SafeDumper):
    """Writes indented lists, as yamllint requires, and no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
