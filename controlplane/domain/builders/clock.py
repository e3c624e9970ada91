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
    """Return the guest's initial time (UTC by default) and its timers."""
    clock = vmi.spec.domain.clock
    if clock is None:
        return Clock(offset="utc")
    timers = _build_timers(clock.timer or Timers(), facts)
    if clock.timezone:
        return Clock(offset="timezone", timezone=clock.timezone, timers=timers)
    if clock.utc is None:
        return Clock(offset="utc", timers=timers)
    seconds = clock.utc.offset_seconds
    return Clock(offset="utc", adjustment="reset" if seconds is None else str(seconds), timers=timers)


def _build_timers(timers: Timers, facts: Facts) -> tuple[Timer, ...]:
    """Return the declared timers. KVM's and Hyper-V's clocks need KVM, so emulation leaves them out."""
    named: tuple[tuple[str, TimerSpec | RtcSpec | PlainTimer | None], ...] = (
        ("rtc", timers.rtc),
        ("pit", timers.pit),
        ("hpet", timers.hpet),
        ("kvmclock", timers.kvm),
        ("hypervclock", timers.hyperv),
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
