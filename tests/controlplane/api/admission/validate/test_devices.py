# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about panic devices and the watchdog."""

from __future__ import annotations

from typing import Any

from tests.controlplane.api.admission.malformed import assert_refused, each, row

PANICS = "domain/devices/panicDevices"
WATCHDOG = "domain/devices/watchdog"

MALFORMED = [
    row("unknown panic device", PANICS, [{"model": "s390"}], "allowed: isa, hyperv, pvpanic", at="[0].model"),
    row("two panic devices of one model", PANICS, [{"model": "isa"}, {}], "of another one already", at="[1].model"),
    row("unknown field of a panic device", PANICS, [{"name": "a"}], "no such field", at="panicDevices[0].name"),
    row("too many panic devices", PANICS, [{}] * 9, "at most 8"),
    row("a watchdog without a name", WATCHDOG, {"i6300esb": {}}, "is required", at="watchdog.name"),
    row("watchdog name with a tag", WATCHDOG, {"name": "<a", "i6300esb": {}}, "must be letters", at="watchdog.name"),
    row(
        "unbuilt watchdog",
        WATCHDOG,
        {"name": "a", "diag288": {"action": "reset"}},
        "use i6300esb instead",
        at="diag288",
    ),
    row("unknown watchdog action", f"{WATCHDOG}/i6300esb/action", "pause", "allowed: reset, poweroff"),
]


@each(MALFORMED)
def test_malformed_devices_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
