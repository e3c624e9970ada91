# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process whose threads decode the first objects of their types at once: `python -m` with the name of a decoder.

Exits with 0 when all threads succeed. The race is short: threads switch as often as they can.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable

from controlplane.api.admission.review import parse_review
from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.schema.shape import shapes
from tests.controlplane.api.golden import machine

THREADS = 8
VM = machine(VIRTUAL_MACHINE)
VMI = machine(VIRTUAL_MACHINE_INSTANCE)
REVIEW = {"request": {"uid": "u", "kind": {"kind": "VirtualMachine"}, "operation": "CREATE", "object": VM}}


DECODERS: dict[str, Callable[[int], object]] = {
    "bytes": lambda number: (decode_vm, decode_vmi)[number % 2](json.dumps((VM, VMI)[number % 2]).encode()),
    "shapes": lambda number: decode_vm(VM) if number % 2 else shapes(VirtualMachine),
    "review": lambda _number: parse_review(json.dumps(REVIEW).encode()),
}


def read_at_once(read: Callable[[int], object]) -> int:
    """Decode in all threads at once; return how many succeed."""
    together = threading.Barrier(THREADS)
    done: list[object] = []

    def decode_one(number: int) -> None:
        together.wait()
        done.append(read(number))

    threads = [threading.Thread(target=decode_one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(done)


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    sys.exit(read_at_once(DECODERS[sys.argv[1]]) != THREADS)
