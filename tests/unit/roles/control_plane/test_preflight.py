# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role control_plane refuses before it writes anything, and that it says why. The conditions are plain Jinja."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
EMPTY: dict[str, Any] = {"owner": "none", "evidence": "", "version": None, "namespace": None, "namespace_owner": "none"}


def refusal(found: dict[str, Any] | None = None, **options: Any) -> str | None:
    """Return what the first assertion that does not hold says; None when all hold."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.tests["version"] = lambda value, other, _operator: value == other  # Ansible's
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    known = {"__control_plane_version": "0.1.0", "__control_plane_found": {**EMPTY, **(found or {})}}
    variables = {**defaults, **known, **options}

    def holds(conditions: str | list[str]) -> bool:
        each = [conditions] if isinstance(conditions, str) else conditions
        return all(environment.compile_expression(one, undefined_to_none=False)(**variables) for one in each)

    for task in yaml.safe_load((ROLE / "tasks/preflight.yml").read_text()):
        check = task.get("ansible.builtin.assert")
        if check and holds(task.get("when", [])) and not holds(check["that"]):
            return environment.from_string(check["fail_msg"]).render(variables)
    return None


def test_an_empty_cluster_is_taken() -> None:
    assert refusal() is None


def test_a_namespace_of_our_own_is_taken_and_so_is_one_that_was_handed_over() -> None:
    assert refusal({"namespace_owner": "ours"}) is None


def test_a_namespace_that_somebody_else_made_is_refused_and_what_can_be_done_is_said() -> None:
    said = refusal({"namespace_owner": "other"}, control_plane_namespace="production")

    assert said is not None
    assert "Namespace production exists" in said
    assert "another name" in said
    assert "kubectl label --overwrite namespace production app.kubernetes.io/managed-by=virtops.kubevirt" in said
    assert "privileged" in said
    assert "removed" in said


def test_removal_looks_at_each_object_and_needs_no_refusal() -> None:
    assert refusal({"namespace_owner": "other"}, control_plane_state="absent") is None


PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def of_webhooks(authority: Any, names: Any, **others: Any) -> str | None:
    options = {"control_plane_webhook_client_ca": authority, "control_plane_webhook_client_names": names}
    return refusal(**options, **others)


@pytest.mark.parametrize(
    ("authority", "names"),
    [
        pytest.param(PEM, "front-proxy-client", id="a name, not a list"),
        pytest.param("", "front-proxy-client", id="a name alone"),
        pytest.param(PEM, {"front-proxy-client": True}, id="a mapping"),
        pytest.param(PEM, [1], id="a number"),
        pytest.param(PEM, [""], id="an empty name"),
        pytest.param(PEM, [], id="no name"),
        pytest.param("", ["front-proxy-client"], id="no authority"),
        pytest.param("/etc/kubernetes/pki/front-proxy-ca.crt", ["front-proxy-client"], id="a path"),
    ],
)
def test_what_would_end_virt_api_is_refused_and_how_it_is_written_is_said(authority: Any, names: Any) -> None:
    said = of_webhooks(authority, names)

    assert said is not None
    assert "lookup('ansible.builtin.file', 'ca.crt')" in said
    assert '["front-proxy-client"]' in said
    assert "Set both or neither" in said


def test_both_and_neither_of_what_proves_api_servers_are_taken() -> None:
    assert of_webhooks(PEM, ["front-proxy-client", "other"]) is None
    assert of_webhooks("", []) is None


def test_options_of_an_installation_do_not_keep_from_removing_it() -> None:
    assert of_webhooks(PEM, [], control_plane_state="absent") is None
