# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import tracemalloc

import pytest
from libvirt_domain.codec import render_text

from controlplane.domain.observed import LIMIT_BYTES, Identity, UnreadableError, read_domain
from tests.controlplane.domain.golden_domains import CASES, Case

ELEMENT = (
    '<vmi xmlns="urn:virtops:kubevirt:1" namespace="ns" name="vm" uid="u" pod="p" epoch="{epoch}" grace="{grace}"/>'
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_built_domain_is_read_back(case: Case) -> None:
    built = case.build()
    written = built.metadata.identity
    observed = read_domain(render_text(built))
    assert observed.identity == Identity(
        namespace=written.namespace,
        name=written.name,
        uid=built.name,
        pod_uid=written.pod_uid,
        epoch=written.epoch,
        grace_period_seconds=written.grace_period_seconds,
    )
    assert (observed.is_kvm, observed.machine) == (built.type == "kvm", built.os.type.machine)
    assert observed.has_acpi is built.features.acpi


@pytest.mark.parametrize(
    ("vcpu", "expected"),
    [
        ("<vcpu placement='static' current='2'>4</vcpu>", 2),
        ("<vcpu placement='static'>4</vcpu>", 0),
        ("", 0),
        ("<vcpu current='-2'>4</vcpu>", 0),
        ("<vcpu current='²'>4</vcpu>", 0),
        ("<vcpu current='123456'>4</vcpu>", 0),
    ],
)
def test_the_current_number_of_cpus_is_read(vcpu: str, expected: int) -> None:
    assert read_domain(f"<domain>{vcpu}</domain>").vcpus == expected


def channels(*targets: str) -> str:
    elements = "".join(f"<channel type='unix'><source mode='bind'/><target {target}/></channel>" for target in targets)
    return f"<domain><devices>{elements}</devices></domain>"


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
def test_the_agent_is_connected_when_its_own_channel_is(text: str, is_connected: bool) -> None:
    assert read_domain(text).is_agent_connected is is_connected


def test_a_foreign_domain_has_no_identity() -> None:
    assert read_domain("<domain type='kvm'><name>a</name></domain>").identity is None


WORDS = 'namespace="ns" name="vm" uid="u" pod="p" epoch="1" grace="1"'
DECLARED = 'xmlns:v="urn:virtops:kubevirt:1"'


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        (f"<domain><metadata><v:vmi {DECLARED} {WORDS}/></metadata></domain>", True),
        (f"<domain><metadata {DECLARED}><v:vmi {WORDS}/></metadata></domain>", True),
        (f"<domain {DECLARED}><metadata><v:vmi {WORDS}/></metadata></domain>", True),
        (f"<domain><metadata {DECLARED}><w:vmi {WORDS}/></metadata></domain>", False),
        (f"<domain><metadata {DECLARED}><vmi {WORDS}/></metadata></domain>", False),
        (f"<domain><metadata {DECLARED}><v:vmi xmlns:v='another' {WORDS}/></metadata></domain>", False),
        (f"<domain><metadata><v:a {DECLARED}/><v:vmi {WORDS}/></metadata></domain>", False),
        (f"<domain><a {DECLARED}/><metadata><v:vmi {WORDS}/></metadata></domain>", False),
    ],
    ids=["itself", "as libvirt", "as we", "another prefix", "no prefix", "declared anew", "a sibling", "an uncle"],
)
def test_our_element_is_recognized_by_its_namespace_wherever_the_prefix_is_declared(text: str, is_ours: bool) -> None:
    assert (read_domain(text).identity is not None) is is_ours


@pytest.mark.parametrize(
    "encoding", ["foo", "utf-7", "idna", "zlib", "hex", "big5", "utf-16", "UTF-32", "undefined", "latin-1"]
)
def test_the_declared_encoding_is_ignored(encoding: str) -> None:
    """Some Python codecs raise errors that would look like a bug of this program."""
    text = f"<?xml version='1.0' encoding='{encoding}'?><domain><os><type machine='\u00e9'/></os></domain>"
    assert read_domain(text).machine == "\u00e9"


def test_an_error_of_the_parser_means_a_malformed_description(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(*_unused: object) -> None:
        raise LookupError("unknown encoding")

    monkeypatch.setattr("controlplane.domain.observed.expat.ParserCreate", lambda *_unused, **__: Broken(break_off))
    with pytest.raises(UnreadableError, match="malformed: unknown encoding"):
        read_domain("<domain/>")


class Broken:
    """A parser that only fails."""

    def __init__(self, parse: object) -> None:
        self.Parse = parse


def test_a_long_namespace_is_not_copied_into_each_name() -> None:
    """expat can prefix each element and attribute name with its namespace, here thousands of characters."""
    tag = "<p:a " + " ".join(f"p:b{number:x}=''" for number in range(1500)) + "/>"
    text = f"<domain xmlns:p='{'u' * 15_000}'>{tag * 10}</domain>"
    tracemalloc.start()
    try:
        read_domain(text)
        _unused, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * len(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("<!DOCTYPE d [<!ENTITY a 'b'>]><domain>&a;</domain>", "document type", id="entities"),
        pytest.param("<domain>", "malformed", id="cut"),
        pytest.param("", "malformed", id="empty"),
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
def test_a_hostile_description_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_domain(text)


def room(requested: str, current: str = "0") -> str:
    sizes = f"<requested unit='KiB'>{requested}</requested><current unit='KiB'>{current}</current>"
    target = f"<target><size unit='KiB'>3145728</size>{sizes}</target>"
    return f"<domain><memory>4194304</memory><devices><memory model='virtio-mem'>{target}</memory></devices></domain>"


@pytest.mark.parametrize(
    ("text", "requested", "taken"),
    [
        (room("1048576", "524288"), 1 << 30, 1 << 29),
        (room("0"), 0, 0),
        ("<domain><memory>4194304</memory></domain>", None, 0),
        (room("much", "more"), None, 0),
        (room("-1"), None, 0),
        (room("9" * 13, "9" * 100_000), None, 0),
        (room("2048<a/>", "2048<a>3</a>"), None, 0),
    ],
    ids=["some of it", "none", "no device", "no numbers", "less than nothing", "too many digits", "elements"],
)
def test_the_requested_and_the_taken_memory_are_read(text: str, requested: int | None, taken: int) -> None:
    observed = read_domain(text)
    assert (observed.requested_bytes, observed.taken_bytes) == (requested, taken)


def test_the_first_memory_device_counts() -> None:
    second = room("2048").partition("<devices>")[2].partition("</devices>")[0]
    assert read_domain(room("1048576").replace("</devices>", f"{second}</devices>")).requested_bytes == 1 << 30
