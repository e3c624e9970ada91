# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher can have virt-handler do by what it says of its domain."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_OBSERVED = "controlplane/domain/observed.py"
_BY_OBSERVED = ("tests/controlplane/domain/test_observed.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_OBSERVED,
        line='expat.ParserCreate(encoding="utf-8", intern=None)',
        without='expat.ParserCreate(encoding="utf-8", namespace_separator=":", intern=None)',
        because="A namespace's long name before each attribute: a second of a processor and 55 MiB for 240 KB.",
        tests=_BY_OBSERVED,
    ),
    Guard(
        file=_OBSERVED,
        line='expat.ParserCreate(encoding="utf-8", intern=None)',
        without="expat.ParserCreate(intern=None)",
        because="A launcher would choose which of Python's codecs reads what it says.",
        tests=_BY_OBSERVED,
    ),
    Guard(
        file=_OBSERVED,
        line="        except (expat.ExpatError, LookupError, ValueError) as error:",
        without="        except expat.ExpatError as error:",
        because="A description that cannot be read would be taken for a bug of ours, with a traceback each 5 s.",
        tests=_BY_OBSERVED,
    ),
    Guard(
        file="controlplane/virt_handler/vmi/status.py",
        line="if pod is None else pod.addresses[:ADDRESSES_LIMIT]",
        without="if pod is None else pod.addresses",
        because="A status would be refused whole for a Pod of many addresses, and its machine never be Running.",
        tests=("tests/controlplane/test_what_guests_say.py",),
    ),
    Guard(
        file="controlplane/api/objects/vmi/status.py",
        line="tuple[Address, ...], bounded(max_items=ADDRESSES_LIMIT)]",
        without="tuple[Word, ...], bounded(max_items=32)]",
        because="A captured node would make a status of 600 KB, which everybody who watches machines holds.",
        tests=("tests/controlplane/api/schema/test_crds.py",),
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="        self._charge(used, read)\n        if not self.outcome.done():",
        without="        self._charge(0.0, read)\n        if not self.outcome.done():",
        because="Who has many short things done that cost much would have a whole processor of virt-handler's.",
        tests=("tests/controlplane/hypervisor/test_calls.py",),
    ),
    Guard(
        file="controlplane/hypervisor/calls.py",
        line="        self._charged = _OWN_SECONDS",
        without="        self._charged = 0.0",
        because="Who may ask a guest's agent could have its launcher's connection cut by asking often.",
        tests=("tests/controlplane/hypervisor/test_calls.py",),
    ),
    Guard(
        file="controlplane/hypervisor/guest.py",
        line="lambda domain: read(domain.XMLDesc(flags)), deadline_seconds=self._deadline\n        )",
        without=(
            "lambda domain: domain.XMLDesc(flags), deadline_seconds=self._deadline\n        )\n"
            "        found = read(found)"
        ),
        because="What it takes to read a description would be charged to nobody, and hold everybody up.",
        tests=("tests/controlplane/hypervisor/test_hostile.py",),
    ),
    Guard(
        file=_OBSERVED,
        line='        if "<!DOCTYPE" in text:\n',
        without="        if False:\n",
        because="Entities and attributes that nobody wrote would make much of a short description.",
        tests=_BY_OBSERVED,
    ),
    Guard(
        file=_OBSERVED,
        line='        return name == _TAG and next(declared, "") == NAMESPACE\n',
        without="        return name == _TAG\n",
        because="An element of somebody else's would be taken for what we wrote.",
        tests=_BY_OBSERVED,
    ),
)
