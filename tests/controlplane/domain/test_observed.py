# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.codec import render_text
from controlplane.domain.observed import LIMIT_BYTES, Identity, UnreadableError, read_domain
from tests.controlplane.domain.golden_domains import CASES, Case

ELEMENT = (
    '<vmi xmlns="urn:virtops:kubevirt:1" namespace="ns" name="vm" uid="u" pod="p" epoch="{epoch}" grace="{grace}"/>'
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_built_is_known_again(case: Case) -> None:
    built = case.build()
    wrote = built.metadata.identity
    seen = read_domain(render_text(built))
    assert seen.identity == Identity(
        namespace=wrote.namespace,
        name=wrote.name,
        uid=built.name,
        pod_uid=wrote.pod_uid,
        epoch=wrote.epoch,
        grace_period_seconds=wrote.grace_period_seconds,
    )
    assert (seen.is_kvm, seen.machine) == (built.type == "kvm", built.os.type.machine)
    assert seen.has_acpi is built.features.acpi


def channels(*targets: str) -> str:
    listed = "".join(f"<channel type='unix'><source mode='bind'/><target {one}/></channel>" for one in targets)
    return f"<domain><devices>{listed}</devices></domain>"


AGENTS = "type='virtio' name='org.qemu.guest_agent.0'"


@pytest.mark.parametrize(
    ("text", "is_connected"),
    [
        (channels(f"{AGENTS} state='connected'"), True),
        (channels(f"{AGENTS} state='disconnected'"), False),
        (channels(AGENTS), False),
        (channels("type='virtio' name='another' state='connected'", f"{AGENTS} state='disconnected'"), False),
        (channels("type='virtio' name='another' state='disconnected'", f"{AGENTS} state='connected'"), True),
        (f"<domain><a><b><target {AGENTS} state='connected'/></b></a></domain>", False),
    ],
)
def test_an_agent_is_there_when_its_own_channel_says_so(text: str, is_connected: bool) -> None:
    assert read_domain(text).is_agent_connected is is_connected


def test_a_foreign_domain_has_no_identity() -> None:
    assert read_domain("<domain type='kvm'><name>a</name></domain>").identity is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("<!DOCTYPE d [<!ENTITY a 'b'>]><domain>&a;</domain>", "document type", id="entities"),
        pytest.param("<domain>", "not XML", id="cut"),
        pytest.param("", "not XML", id="empty"),
        pytest.param("<network/>", "expected a domain", id="other element"),
        pytest.param(f"<domain>{'x' * LIMIT_BYTES}</domain>", "at most", id="huge"),
        pytest.param(f"<domain>{'ä' * (LIMIT_BYTES - 20)}</domain>", "more than", id="huge in bytes"),
        pytest.param("<domain>" + "<a>" * 1000, "nests them too deeply", id="deep"),
        pytest.param(f"<domain>{'<a/>' * 5000}</domain>", "too many elements", id="many elements"),
        pytest.param("<domain><a b='" + "x" * 60_000 + "'/></domain>", "a tag of", id="long tag"),
        pytest.param(
            f"<domain><metadata>{ELEMENT.format(epoch='x', grace=1)}</metadata></domain>", "numbers", id="epoch"
        ),
        pytest.param(
            f"<domain><metadata>{ELEMENT.format(epoch='', grace=1)}</metadata></domain>", "incomplete", id="gap"
        ),
        pytest.param(
            f"<domain><metadata>{ELEMENT.format(epoch='1' * 300, grace=1)}</metadata></domain>", "too long", id="long"
        ),
    ],
)
def test_what_a_tenant_could_send_instead_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_domain(text)
