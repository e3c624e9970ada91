# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of what each VM's history allows: when a run may begin, and whether one must exist in the end.

It knows run strategies, accepted requests and the ends of runs, in the order of the API server; it shares no code with
the controller. Where that order allows both results, it says so (None).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from tests.support.store import OVER, Change, Json


@dataclass(slots=True)
class Account:
    """The history of one VM, by UID."""

    strategy: str
    must_run: bool | None
    """For strategies that depend on history (Manual, RerunOnFailure, Once): whether a run must exist at the end."""
    causes: list[str] = field(default_factory=list)
    """Reasons for a run that no run has used up."""
    owed_after: int | None = None
    """The version of an accepted start whose run is pending."""
    owed_stop: str | None = None
    """The UID of the instance that an accepted stop named."""
    may_start: bool = False
    """Its status still asks for a run: a start is queued, or its strategy is not recorded as applied."""
    is_going: bool = False
    is_touched: bool = True
    """Its strategy has changed since the last rest: it may not be applied yet."""


class Ledger:
    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self._owners: dict[str, str] = {}
        """UID of the VM by UID of its instance."""

    def accepted(self, request: str, vm: VirtualMachine, vmi: VirtualMachineInstance | None, version: int) -> None:
        """Record a request that virt-api answered with 202."""
        account = self.accounts[vm.metadata.uid]
        vmi_uid = None if vmi is None else vmi.metadata.uid
        if request in ("start", "restart"):
            has_begun = request == "start" and vmi is not None and vmi.status.phase not in OVER
            account.must_run, account.owed_after = True, None if has_begun else version
            account.causes.append(f"a user requested a {request}")
        else:
            # While a start is pending, the order in which both are carried out is open.
            account.must_run, account.owed_after = None if account.may_start else False, None
        if request in ("stop", "restart") and vmi_uid is not None:
            account.owed_stop = vmi_uid

    def dropped(self, vm_uid: str) -> None:
        """Record that the status reports a request as dropped."""
        account = self.accounts.get(vm_uid)
        if account is not None:
            account.must_run = account.owed_after = account.owed_stop = None

    def take_vm(self, change: Change) -> None:
        """Follow strategies and deletions."""
        if change.after is None:
            self.accounts.pop(_uid(change.before or {"metadata": {}}), None)
            return
        strategy, uid = strategy_of(change.after), _uid(change.after)
        account = self.accounts.get(uid)
        if account is None:
            begins = strategy in ("RerunOnFailure", "Once")
            must_run = begins or (False if strategy == "Manual" else None)
            account = self.accounts[uid] = Account(strategy, must_run=must_run)
            account.causes = [f"created with {strategy}"] if begins else []
        elif strategy != account.strategy:
            self._switch(account, strategy)
        account.is_going = "deletionTimestamp" in change.after["metadata"]
        account.may_start = _asks_for_start(change.after)

    def take_vmi(self, change: Change, seen: bytes | None, *, has_pod: bool = True) -> str | None:
        """Follow runs; return why this change is wrong, or None. seen: the VM as the writer knew it. has_pod: the
        granted Pod exists and is not being deleted.
        """
        before, after = change.before, change.after
        uid = _uid(after or before or {"metadata": {}})
        if after is not None:
            owner = controlling_uid(after)
            if owner is not None and owner not in (controlling_uid(before) if before else None,):
                self._owners[uid] = owner
                if before is not None and owner in self.accounts:
                    self._adopt(self.accounts[owner])
        account = self.accounts.get(self._owners.get(uid, ""))
        if account is None:
            return None
        if before is None and after is not None and change.actor == "controller":
            return self._begin(account, seen)
        self._end(account, change, has_pod=has_pod)
        return None

    def lost_pod_after_its_end(self, vmi_uid: str) -> None:
        """Record that a Pod is deleted whose run is over: its controller may have read the Pod before, or not."""
        account = self.accounts.get(self._owners.get(vmi_uid, ""))
        if account is not None and account.strategy == "RerunOnFailure" and account.must_run is False:
            account.must_run = None
            account.causes.append("its last run may have been evicted")

    def rest(self) -> None:
        """Record that the world is at rest: all pending requests are done."""
        for account in self.accounts.values():
            account.is_touched = False

    def _switch(self, account: Account, strategy: str) -> None:
        account.causes.append(f"switched to {strategy}")
        account.owed_after = account.owed_stop = None
        account.strategy, account.must_run, account.is_touched = strategy, None, True

    def _adopt(self, account: Account) -> None:
        account.must_run, account.owed_after = None, None
        account.causes.append("an adopted instance may have ended")

    @staticmethod
    def _begin(account: Account, seen: bytes | None) -> str | None:
        """Let a run use up its causes; Always needs none."""
        if account.strategy != "Always" and not account.causes and not account.may_start and not account.is_going:
            if seen is None or not _asks_for_start(msgspec.json.decode(seen)):
                return f"a run began under {account.strategy} without a request"
            account.must_run = None  # the cause was withdrawn while the response was on its way
        account.causes.clear()
        account.owed_after = None
        return None

    @staticmethod
    def _end(account: Account, change: Change, *, has_pod: bool) -> None:
        before, after = change.before or {}, change.after
        is_over = after is not None and _phase(after) in OVER and _phase(before) not in OVER
        was_going = "deletionTimestamp" in before.get("metadata", {})
        if is_over and after is not None and not was_going and "deletionTimestamp" not in after["metadata"]:
            if account.owed_stop == _uid(after):
                if account.owed_after is None and account.must_run is not None:
                    account.must_run = False
            elif account.strategy == "RerunOnFailure" and (_phase(after) == "Failed" or not has_pod):
                account.causes.append("its last run failed, or was evicted")
                account.must_run = True if account.must_run is not None else None
            elif account.owed_after is None:
                account.must_run = False if account.must_run is not None else None
        is_going = after is None or "deletionTimestamp" in after["metadata"]
        if is_going and not was_going:
            # By any process: a leader that still sees the former strategy may create it, and that one run is then still
            # due.
            account.causes += ["its instance was taken away"] if account.strategy == "Once" else []
            if change.actor != "controller":
                account.must_run = account.owed_after = None
        if after is None and account.owed_stop == _uid(before):
            account.owed_stop = None


UNKNOWN = "WaitAsReceiver"
"""A strategy of a newer API: older versions do nothing, and report it."""


def strategy_of(vm: Json) -> str:
    """Return the run strategy of a VM."""
    spec = vm["spec"]
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))


def asks_for_run(vm: Json) -> bool:
    """Whether a VM, as it is, asks for a run when it has none."""
    return strategy_of(vm) != UNKNOWN and (strategy_of(vm) == "Once" or _asks_for_start(vm))


def _asks_for_start(vm: Json) -> bool:
    strategy, status = strategy_of(vm), vm.get("status", {})
    is_new = strategy == "RerunOnFailure" and status.get("runStrategy") != strategy
    queued = status.get("stateChangeRequests") or ()
    return strategy == "Always" or is_new or any(each["action"] == "Start" for each in queued)


def asks_paused(request: Json) -> bool:
    """Whether a request is a paused start."""
    return request["action"] == "Start" and (request.get("data") or {}).get("paused") == "true"


def is_paused(vmi: Json) -> bool:
    """Whether the guest of a VMI starts paused."""
    return bool(vmi["spec"].get("startStrategy") == "Paused")


def controlling_uid(body: Json) -> str | None:
    """Return the UID of the controlling owner."""
    owners = body["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), None)


def _uid(body: Json) -> str:
    return str(body.get("metadata", {}).get("uid", ""))


def _phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))


def numbers(vmi: Json) -> tuple[int, int]:
    """Return attempt and epoch."""
    status = vmi.get("status", {})
    return int(status.get("attempt", status.get("epoch", 0))), int(status.get("epoch", 0))
