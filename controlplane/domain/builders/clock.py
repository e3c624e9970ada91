# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's clock."""

from __future__ import annotations

from libvirt_domain.model.clock import Clock, Timer

from controlplane.api.objects.vmi.domain import PlainTimer, Timers
from controlplane.api.objects.vmi.domain import RtcTimer as RtcSpec
from controlplane.api.objects.vmi.domain import Timer as TimerSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts

_ONLY_UNDER_KVM = ("kvmclock", "hypervclock")


def build_clock(vmi: VirtualMachineInstance, facts: Facts) -> Clock:
    """Say what time the guest starts with (UTC unless asked otherwise) and which timers it has."""
    asked = vmi.spec.domain.clock
    if asked is None:
        return Clock(offset="utc")
    timers = _build_timers(asked.timer or Timers(), facts)
    if asked.timezone:
        return Clock(offset="timezone", timezone=asked.timezone, timers=timers)
    if asked.utc is None:
        return Clock(offset="utc", timers=timers)
    seconds = asked.utc.offset_seconds
    return Clock(offset="utc", adjustment="reset" if seconds is None else str(seconds), timers=timers)


def _build_timers(asked: Timers, facts: Facts) -> tuple[Timer, ...]:
    """Return the timers asked for. KVM's and Hyper-V's clocks are shown by KVM: emulation has none to show."""
    named: tuple[tuple[str, TimerSpec | RtcSpec | PlainTimer | None], ...] = (
        ("rtc", asked.rtc),
        ("pit", asked.pit),
        ("hpet", asked.hpet),
        ("kvmclock", asked.kvm),
        ("hypervclock", asked.hyperv),
    )
    return tuple(
        Timer(
            name=name,
            present=spec.present is not False,
            tick_policy=getattr(spec, "tick_policy", "") or None,
            track=getattr(spec, "track", "") or None,
        )
        for name, spec in named
        if spec is not None and (facts.is_kvm or name not in _ONLY_UNDER_KVM)
    )
