# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A refusal of the API server as a sentence for the user."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import errors, refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, errors.NotFound), (409, errors.Conflict), (403, errors.Forbidden), (401, errors.Forbidden),
     (422, errors.Invalid), (500, errors.ApiError)],
)  # fmt: skip
def test_the_class_follows_from_the_code(status: int, kind: type[errors.ApiError]) -> None:
    error = refusals.refusal("apply X", status, {"message": "why"})
    assert error.__class__ is kind
    assert error.message.startswith("cannot apply X: why")


def test_causes_replace_a_message_that_may_contain_the_object() -> None:
    body = {"message": "secret " * 500, "details": {"causes": [{"field": "spec.x", "message": "unknown"}]}}
    error = refusals.refusal("apply X", 422, body)
    assert error.message == "cannot apply X: spec.x: unknown"
    assert error.facts["causes"] == [{"field": "spec.x", "message": "unknown"}]


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (
            'vms is forbidden: User "jane" cannot list resource "vms" in API group "kubevirt.io"',
            " (ask the cluster's adm",
        ),
        ('forbidden: User "jane" cannot get path "/apis"', " (ask the cluster's administrator"),
        ("metadata.namespace: namespace team is being terminated", " (nothing can be created in it"),
        ('vms "web" is forbidden: exceeded quota: few, requested: count/vms=1, used: 1, limited: 1', None),
    ],
)
def test_a_forbidden_request_has_a_matching_remedy(why: str, remedy: str | None) -> None:
    message = refusals.refusal("apply X", 403, {"message": why}).message

    assert message.partition(why)[2].startswith(remedy) if remedy else message.endswith(why)


def test_a_webhook_that_does_not_respond_is_no_refusal() -> None:
    """As the API server reports it: a cause without a field."""
    why = 'failed calling webhook "virtualmachines-mutator.kubevirt.io": no endpoints available for service "virt-api"'
    body = {"reason": "InternalError", "details": {"causes": [{"message": why}]}}
    error = refusals.refusal("apply X", 500, body)

    assert error.message.startswith(f"cannot apply X: {why} (")
    assert "look at the control plane's Pods" in error.message


def test_an_aggregated_api_that_does_not_respond_is_named() -> None:
    """The API server reports it in plain text, with no more than this."""
    error = refusals.refusal("restart VirtualMachine default/web", 503, "service unavailable")

    assert error.message.startswith("cannot restart VirtualMachine default/web: service unavailable (")
    assert "look at the control plane's Pods, of virt-api for ours" in error.message


def test_foreign_text_is_cut_and_made_printable() -> None:
    error = refusals.refusal("apply X", 500, "a\x1b[31m\n" + "b" * 5000)
    assert "\x1b" not in error.message
    assert len(error.message) < errors.MESSAGE_LIMIT + 100


@pytest.mark.parametrize(
    "answer",
    [
        {"code": 403, "details": "no policy"},
        {"details": ["no policy"]},
        {"details": {"causes": {"field": "no policy"}}},
        {"details": {"causes": 5}, "message": 5},
        ["no policy"],
    ],
    ids=str,
)
def test_an_error_page_of_a_proxy_is_a_refusal_too(answer: object) -> None:
    error = refusals.refusal("read VirtualMachine default/web", 403, answer)

    assert isinstance(error, errors.Forbidden)
    assert error.message.startswith("cannot read VirtualMachine default/web: ")


TYPED = "failed to create typed patch object (ty/web; kubevirt.io/v1, Kind=VirtualMachine): "


def test_an_apply_with_wrong_types_names_the_fields_and_is_a_user_error() -> None:
    """The API server responds with 500 and quotes its values."""
    lines = (
        "errors:",
        "  .spec.template.spec.domain.cpu.cores: expected numeric (int or float), got string",
        "  .spec.template.spec.domain.devices.autoattachGraphicsDevice: expected boolean, got &{yes}",
        "  .spec.template.spec.tolerations: expected list, got &{map[a:1]}",
        "  .spec.template.spec.hostname: expected string, got &value.valueUnstructured{Value:5}",
    )
    error = refusals.refusal("apply X", 500, {"message": TYPED + "\n".join(lines)})

    assert isinstance(error, errors.Invalid)
    assert error.facts["causes"] == [
        {"field": "spec.template.spec.domain.cpu.cores", "message": "must be a number, and is a text"},
        {
            "field": "spec.template.spec.domain.devices.autoattachGraphicsDevice",
            "message": "must be true or false, and is a text",
        },
        {"field": "spec.template.spec.tolerations", "message": "must be a list"},
        {"field": "spec.template.spec.hostname", "message": "must be a text"},
    ]
    assert "jinja2_native" in error.message


def test_one_such_field_is_reported_like_several() -> None:
    why = f"{TYPED}.spec.disks[0].bootOrder: expected numeric (int or float), got string"
    error = refusals.refusal("apply X", 500, {"message": why})

    assert error.message.startswith("cannot apply X: spec.disks[0].bootOrder: must be a number, and is a text (")


def test_a_text_in_a_numeric_field_has_the_remedy_for_older_ansible() -> None:
    causes = [{"field": "spec.cores", "message": "must be a whole number, got a string"}]
    assert "jinja2_native" in refusals.refusal("change X", 422, {"details": {"causes": causes}}).message
    causes = [{"field": "spec.cores", "message": "must be a whole number, got a list"}]
    assert "jinja2_native" not in refusals.refusal("change X", 422, {"details": {"causes": causes}}).message
