# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether this machine runs guests on KVM: run a virtual processor. Prints {"usable": ..., "reason": ...}.

An existing /dev/kvm that opens proves little. Without hardware virtualization KVM may emulate the guest's kernel
instruction by instruction. At an instruction that it does not know, the guest dies or hangs. So the probe runs the
first milliseconds of any kernel: from real mode to long mode with paging, SSE2, a few million instructions, changed
page tables, port I/O. It runs in a child process with a deadline, because KVM_RUN may never return.

Exit code 0: the check has a result, usable or not. Standard library only; Linux on x86-64.
Interface of KVM: Documentation/virt/kvm/api.rst of Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import select
import signal
import struct
import sys
import time

DEVICE = "/dev/kvm"
DEFAULT_DEADLINE_SECONDS = 5.0

API_VERSION = 12
GET_API_VERSION = 0xAE00
CREATE_VM = 0xAE01
GET_VCPU_MMAP_SIZE = 0xAE04
GET_SUPPORTED_CPUID = 0xC008AE05
CREATE_VCPU = 0xAE41
SET_USER_MEMORY_REGION = 0x4020AE46
SET_TSS_ADDR = 0xAE47
RUN = 0xAE80
SET_REGS = 0x4090AE82
GET_SREGS = 0x8138AE83
SET_SREGS = 0x4138AE84
SET_CPUID2 = 0x4008AE90

EXIT_IO, EXIT_HLT, EXIT_SHUTDOWN, EXIT_FAIL_ENTRY, EXIT_INTR, EXIT_INTERNAL_ERROR = 2, 5, 8, 9, 10, 17
EXIT_REASON_AT, IO_AT = 8, 32  # offsets in struct kvm_run
EMULATION_FAILED = 1
PR_SET_PDEATHSIG = 1

MEMORY_BYTES = 4 << 20
CODE_AT = 0x8000
GDT_AT = 0x8100
PAGE_TABLES_AT = 0x1000
TSS_AT = 0x7FFB0000  # outside of the guest's memory; processors without unrestricted mode need it
PORT = 0x10
PATIENCE = 0.7
"""Share of the deadline for the processor. The rest is for the end of its process, which a busy machine delays."""

PROGRAM = bytes.fromhex(
    # Real mode at 0:0x8000
    "fa"  # cli
    "31c0 8ed8"  # ds = 0
    "660f01160081"  # lgdt 0x8100
    "66b820060000 0f22e0"  # cr4 = PAE, SSE
    "66b800100000 0f22d8"  # cr3 = 0x1000
    "66b9800000c0 0f32 660d00010000 0f30"  # EFER.LME
    "66b831000080 0f22c0"  # cr0 = paging, protection
    "66ea3e8000000800"  # far jump to the next line, long mode
    # Long mode
    "66b81000 8ed8 8ec0 8ed0"  # data segments
    "bcf07f0000"  # rsp
    "b815000000 660f6ec0 660ffec0 660f7ec0"  # eax = 21 + 21, added by SSE2
    "66ba1000 ef"  # out 0x10
    "e843000000"  # call the last line
    "bf00002000 b900020000"  # 512 pages from 2 MiB on:
    "48893f 4881c700100000 ffc9 75f2"  # each gets its own address
    "b900093d00 31c0"  # sum of 4,000,000 .. 1
    "01c8 ffc9 75fa"
    "ef"  # out 0x10
    "48c704251830000083002000"  # map 6 MiB to 2 MiB
    "0f013c2500006000"  # invlpg
    "8b042500106000 ef"  # out 0x10: what the second page holds
    "f4"  # hlt
    "50 5b c3"  # push, pop, return
)
EXPECTED = (42, sum(range(4_000_001)) & 0xFFFFFFFF, 0x201000)
GDT = struct.pack("<HIxx", 23, GDT_AT + 8) + struct.pack("<QQQ", 0, 0x00AF9A000000FFFF, 0x00CF92000000FFFF)
PAGE_TABLES = {0x1000: (0x2003,), 0x2000: (0x3003,), 0x3000: (0x83, 0x200083)}


class Unusable(Exception):
    """KVM cannot run guests on this machine. The text says why."""


def main() -> int:
    """Print the verdict as one line of JSON."""
    parser = argparse.ArgumentParser(description="Say whether this machine runs guests on KVM.")
    parser.add_argument(
        "--deadline", type=float, default=DEFAULT_DEADLINE_SECONDS, help="seconds until the verdict is no"
    )
    parser.add_argument("--device", default=DEVICE)
    chosen = parser.parse_args()
    usable, reason = probe(chosen.device, chosen.deadline)
    print(json.dumps({"usable": usable, "reason": reason}))
    return 0


def probe(device: str, deadline_seconds: float) -> tuple[bool, str]:
    """Return whether guests can run on KVM, and the reason. Never takes longer than the deadline."""
    if platform.machine() != "x86_64":
        return False, f"the probe knows x86_64 only, this is {platform.machine()}"
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        _answer(device, send)
    os.close(send)
    try:
        return _await(receive, child, deadline_seconds)
    finally:
        os.close(receive)


def _answer(device: str, send: int) -> None:
    """The child: run the processor, write the result to the pipe, and exit."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    text = b"-the probe itself failed"
    try:
        run_guest(device)
        text = b"+"
    except Unusable as error:
        text = b"-" + str(error).encode()
    except OSError as error:
        text = b"-" + f"KVM refused to make a virtual machine: {error.strerror}".encode()
    finally:
        os.write(send, text)
        os._exit(0)


def _await(receive: int, child: int, deadline_seconds: float) -> tuple[bool, str]:
    """The parent: wait for the child's result until the deadline at most, and reap the child."""
    started = time.monotonic()
    ready, _unused, _unused = select.select([receive], [], [], deadline_seconds * PATIENCE)
    text = os.read(receive, 4096).decode() if ready else ""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    is_reaped = _reap(child, started + deadline_seconds)
    if text == "+":
        return True, "a virtual processor ran from real mode to long mode and back out"
    if text:
        return False, text[1:] + _modules()
    if ready:
        return False, "the process that ran a virtual processor died" + _modules()
    stuck = "" if is_reaped else " and cannot be killed"
    return (
        False,
        f"KVM hangs: a virtual processor did not finish within {deadline_seconds * PATIENCE:.1f} s{stuck}{_modules()}",
    )


def _reap(child: int, until: float) -> bool:
    """Wait for a killed child. init reaps a child that is stuck in the kernel for longer."""
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    return False


def _modules() -> str:
    """Return the kernel's KVM modules in words: kvm_pvm, for example, explains limits to an administrator."""
    try:
        modules = sorted(name for name in os.listdir("/sys/module") if name.startswith("kvm"))
    except OSError:
        return ""
    return f" (kernel modules: {', '.join(modules)})" if modules else ""


def run_guest(device: str) -> None:
    """Run the program on a virtual processor. Raises Unusable with the reason, or OSError from an ioctl."""
    kvm = _open(device)
    version = fcntl.ioctl(kvm, GET_API_VERSION)
    if version != API_VERSION:
        raise Unusable(f"{device} speaks version {version} of KVM's interface, not {API_VERSION}")
    machine = fcntl.ioctl(kvm, CREATE_VM, 0)
    memory = mmap.mmap(-1, MEMORY_BYTES)
    _fill(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(machine, SET_TSS_ADDR, TSS_AT)
    fcntl.ioctl(machine, SET_USER_MEMORY_REGION, struct.pack("<IIQQQ", 0, 0, 0, MEMORY_BYTES, address))
    processor = fcntl.ioctl(machine, CREATE_VCPU, 0)
    _set_features(kvm, processor)
    _set_registers(processor)
    with mmap.mmap(processor, fcntl.ioctl(kvm, GET_VCPU_MMAP_SIZE)) as shared:
        _run(processor, shared)


def _open(device: str) -> int:
    try:
        return os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unusable(
            f"{device} does not exist: virtualization is off in the firmware, or no KVM module is loaded"
        ) from None
    except PermissionError:
        raise Unusable(f"no permission to open {device}") from None
    except OSError as error:
        raise Unusable(f"{device} does not open: {error.strerror}") from None


def _fill(memory: mmap.mmap) -> None:
    memory[CODE_AT : CODE_AT + len(PROGRAM)] = PROGRAM
    memory[GDT_AT : GDT_AT + len(GDT)] = GDT
    for at, entries in PAGE_TABLES.items():
        memory[at : at + 8 * len(entries)] = struct.pack(f"<{len(entries)}Q", *entries)


def _set_features(kvm: int, processor: int) -> None:
    """Give the processor all features of KVM. Without a CPUID it would have no long mode."""
    entries = 256
    table = bytearray(struct.pack("<II", entries, 0) + bytes(40 * entries))
    fcntl.ioctl(kvm, GET_SUPPORTED_CPUID, table, True)
    fcntl.ioctl(processor, SET_CPUID2, table, True)


def _set_registers(processor: int) -> None:
    """Start in real mode at 0:CODE_AT. All other registers keep their values after reset."""
    special = bytearray(312)
    fcntl.ioctl(processor, GET_SREGS, special, True)
    struct.pack_into("<QIH", special, 0, 0, 0xFFFF, 0)  # CS: base, limit, selector
    fcntl.ioctl(processor, SET_SREGS, bytes(special))
    general = [0] * 18
    general[16], general[17] = CODE_AT, 2  # rip, rflags
    fcntl.ioctl(processor, SET_REGS, struct.pack("<18Q", *general))


def _run(processor: int, shared: mmap.mmap) -> None:
    """Run until the guest halts, and check its output."""
    values: list[int] = []
    while True:
        try:
            fcntl.ioctl(processor, RUN, 0)
        except OSError as error:
            if error.errno == errno.EINTR:
                continue
            raise Unusable(f"KVM does not run a virtual processor: {error.strerror}") from None
        reason = struct.unpack_from("<I", shared, EXIT_REASON_AT)[0]
        if reason == EXIT_IO:
            values.append(_put_out(shared))
        elif reason == EXIT_HLT:
            break
        elif reason != EXIT_INTR:
            raise Unusable(_explain(reason, shared))
    if tuple(values) != EXPECTED:
        raise Unusable(f"a virtual processor computes wrongly: {values} instead of {list(EXPECTED)}")


def _put_out(shared: mmap.mmap) -> int:
    _unused, size, port, count, offset = struct.unpack_from("<BBHIQ", shared, IO_AT)
    if (size, port, count) != (4, PORT, 1):
        raise Unusable(f"a virtual processor lost its way: {size} bytes to port {port:#x}")
    return int(struct.unpack_from("<I", shared, offset)[0])


def _explain(reason: int, shared: mmap.mmap) -> str:
    detail = struct.unpack_from("<I", shared, IO_AT)[0]
    if reason == EXIT_INTERNAL_ERROR and detail == EMULATION_FAILED:
        return "KVM emulates a guest's kernel instead of running it, and does not know every instruction"
    reasons = {
        EXIT_SHUTDOWN: "a virtual processor stops with a triple fault",
        EXIT_FAIL_ENTRY: "the processor refuses to enter the guest",
        EXIT_INTERNAL_ERROR: f"KVM failed by itself (internal error {detail})",
    }
    return reasons.get(reason, f"a virtual processor stops for an unexpected reason ({reason})")


if __name__ == "__main__":
    sys.exit(main())
