# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from controlplane.links.handler import Verb
from controlplane.virt_api.subresources.options import (
    BadOptionsError,
    EvacuationOptions,
    MigrateOptions,
    PowerOptions,
    RestartOptions,
    StartOptions,
    StopOptions,
    parse_evacuation,
    parse_migrate,
    parse_power,
    parse_restart,
    parse_start,
    parse_stop,
)


@pytest.mark.parametrize("body", [b"", b"  \n", b"null", b"{}", b'{"kind":"StartOptions","apiVersion":"v1"}'], ids=repr)
def test_an_absent_body_means_defaults(body: bytes) -> None:
    assert parse_start(body) == StartOptions()
    assert parse_stop(body) == StopOptions()
    assert parse_restart(body) == RestartOptions()


@pytest.mark.parametrize("verb", get_args(Verb))
@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"kind":"PauseOptions","apiVersion":"v1"}'], ids=repr)
def test_a_power_verb_needs_no_body(verb: Verb, body: bytes) -> None:
    assert parse_power(verb, body) == PowerOptions(thaw_after=300 if verb == "freeze" else 0)


@pytest.mark.parametrize("verb", get_args(Verb))
def test_only_pause_and_unpause_have_a_dry_run(verb: Verb) -> None:
    if verb in ("pause", "unpause"):
        assert parse_power(verb, b'{"dryRun": ["All"]}') == PowerOptions(dry_run=True)
        return
    known_options = "unfreezeTimeout" if verb == "freeze" else "none"
    with pytest.raises(BadOptionsError, match=f"'dryRun': unknown option; known are {known_options}"):
        parse_power(verb, b'{"dryRun": ["All"]}')


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m0s", 300), ("0s", 0), ("1h", 3600), ("1.5s", 2), ("1ms", 1), ("24h0m0s", 86400)]
)
def test_a_freeze_has_a_timeout(text: str, seconds: int) -> None:
    body = json.dumps({"unfreezeTimeout": text}).encode()
    assert parse_power("freeze", body) == PowerOptions(thaw_after=seconds)


@pytest.mark.parametrize("value", ["-1s", "25h", "5", "", "soon", 300, True, ["5m"]], ids=repr)
def test_an_invalid_timeout_is_refused_with_its_field(value: object) -> None:
    with pytest.raises(BadOptionsError, match='unfreezeTimeout: must be a duration from "0s" to "86400s"'):
        parse_power("freeze", json.dumps({"unfreezeTimeout": value}).encode())


def test_options_are_read() -> None:
    assert parse_start(b'{"paused": true, "dryRun": ["All"]}') == StartOptions(paused=True, dry_run=True)
    assert parse_stop(b'{"gracePeriod": 0, "dryRun": []}') == StopOptions(grace_period=0)
    assert parse_restart(b'{"gracePeriodSeconds": 0}') == RestartOptions(grace_period=0)


@pytest.mark.parametrize(
    ("parse", "body", "words"),
    [
        (parse_start, b"[]", "must be a JSON object, got list"),
        (parse_start, b'{"paused"', "not valid JSON"),
        (parse_start, b"\xff", "not valid JSON"),
        (parse_start, b"[" * 100_000, "not valid JSON"),
        (parse_start, b'{"paused": "yes"}', 'paused: must be true or false, not "yes"'),
        (parse_start, b'{"pasued": true}', "'pasued': unknown option; known are dryRun, paused"),
        (parse_start, b'{"dryRun": ["Some"]}', 'dryRun: must be absent or ["All"]'),
        (parse_stop, b'{"gracePeriod": -1}', "gracePeriod: must be a whole number of seconds from 0"),
        (parse_stop, b'{"gracePeriod": true}', "gracePeriod: must be a whole number"),
        (parse_stop, b'{"gracePeriod": 1e99}', "gracePeriod: must be a whole number"),
        (parse_restart, b'{"gracePeriodSeconds": 30}', "gracePeriodSeconds: must be 0"),
        (parse_restart, b'{"gracePeriodSeconds": -1}', "gracePeriodSeconds: must be a whole number"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else None,
)
def test_an_invalid_body_is_refused_with_the_field_and_the_rule(parse: Any, body: bytes, words: str) -> None:
    with pytest.raises(BadOptionsError) as refused:
        parse(body)

    assert words in str(refused.value)
    assert len(str(refused.value)) < 400


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(BadOptionsError, match=r"x.*paused.*dryRun"):
        parse_start(b'{"x": 1, "paused": 1, "dryRun": 1}')


def test_evacuate_cancel_may_name_a_node() -> None:
    assert parse_evacuation(b"") == EvacuationOptions()
    assert parse_evacuation(b'{"evacuationNodeName": "node-1"}') == EvacuationOptions("node-1")
    assert parse_evacuation(json.dumps({"evacuationNodeName": "n" * 253}).encode()).node == "n" * 253
    for value in ("n" * 254, 7, ["node-1"]):
        with pytest.raises(BadOptionsError, match="evacuationNodeName: must be a name of at most 253 characters"):
            parse_evacuation(json.dumps({"evacuationNodeName": value}).encode())


def test_a_migration_may_have_a_node_selector_and_a_dry_run() -> None:
    assert parse_migrate(b"") == MigrateOptions()
    body = b'{"addedNodeSelector": {"disktype": "ssd", "a/b": ""}, "dryRun": ["All"]}'
    assert parse_migrate(body) == MigrateOptions({"disktype": "ssd", "a/b": ""}, dry_run=True)
    assert parse_migrate(b'{"addedNodeSelector": null}') == MigrateOptions()


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("node-1", "addedNodeSelector: must be at most 64 labels"),
        (["a"], "addedNodeSelector: must be at most 64 labels"),
        ({"a": 1}, "addedNodeSelector: must be at most 64 labels with their values as strings"),
        ({f"a{number}": "" for number in range(65)}, "at most 64 labels"),
        ({"a b": ""}, r"addedNodeSelector\[a b\]: .* is not a label key"),
        ({"a": "b c"}, r"addedNodeSelector\[a\]: .* is not a label value"),
    ],
)
def test_an_invalid_node_selector_is_refused_with_its_field(selector: object, words: str) -> None:
    with pytest.raises(BadOptionsError, match=words):
        parse_migrate(json.dumps({"addedNodeSelector": selector}).encode())


def test_an_unknown_option_of_a_migration_is_refused() -> None:
    with pytest.raises(BadOptionsError, match="'targetNode': unknown option; known are addedNodeSelector, dryRun"):
        parse_migrate(b'{"targetNode": "node-2"}')
