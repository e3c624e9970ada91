# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation rules in CEL, which the API server checks itself. Each function changes a schema in place."""

from __future__ import annotations

from controlplane.api.schema.openapi import Schema


def rule(schema: Schema, expression: str, message: str) -> None:
    """Add a rule to a schema: the expression must be true."""
    schema.setdefault("x-kubernetes-validations", []).append({"rule": expression, "message": message})


def exactly_one(schema: Schema, what: str) -> None:
    """Require exactly one of a union's optional objects, e.g. of a volume's sources."""
    sources = sorted(name for name, member in schema["properties"].items() if member["type"] == "object")
    present = ", ".join(f"has(self.{name})" for name in sources)
    rule(schema, f"[{present}].filter(one, one).size() == 1", f"needs exactly one {what}: {', '.join(sources)}")


def at_most_one(schema: Schema, *members: str) -> None:
    """Refuse an object that has both members."""
    rule(schema, f"!(has(self.{members[0]}) && has(self.{members[1]}))", " and ".join(members) + " exclude each other")


def add_machine_rules(spec: Schema) -> None:
    """Add the rules of a VirtualMachineInstanceSpec, in an instance or in a template."""
    properties = spec["properties"]
    domain = properties["domain"]["properties"]
    exactly_one(properties["volumes"]["items"], "source")
    exactly_one(properties["networks"]["items"], "source")
    at_most_one(domain["devices"]["properties"]["disks"]["items"], "disk", "cdrom")
    at_most_one(domain["firmware"]["properties"]["bootloader"], "bios", "efi")
    at_most_one(domain["clock"], "utc", "timezone")
