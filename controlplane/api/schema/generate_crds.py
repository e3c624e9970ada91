# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the CRDs that the role applies: python -m controlplane.api.schema.generate_crds. A tool, not a service.

Run it after a change of a type; a test compares the files with the types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from controlplane.api.schema.crds import DEFINITIONS, crd

FOLDER = Path(__file__).parents[3] / "roles" / "control_plane" / "files" / "crds"
HEADER = "---\n# Generated from controlplane/api by: python -m controlplane.api.schema.generate_crds\n"


def render(definition: dict[str, Any]) -> str:
    """Spell one CRD as YAML."""
    return HEADER + yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def files() -> dict[Path, str]:
    """Return what should be in the role's folder."""
    return {FOLDER / f"{one.plural}.yaml": render(crd(one)) for one in DEFINITIONS}


class _Dumper(yaml.SafeDumper):
    """Writes lists indented, as yamllint wants them, and repeats itself rather than use anchors."""

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
