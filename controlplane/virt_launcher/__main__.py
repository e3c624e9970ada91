# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-launcher's entry point: start libvirtd, prepare, supervise, report how the guest ended.

libvirtd starts first. Meanwhile this process prepares the disks, and imports asyncio and the libvirt binding.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from controlplane.api.launch_plan import PLAN_LIMIT_BYTES, LaunchPlan, parse_plan
from controlplane.domain import layout
from controlplane.process import logs
from controlplane.virt_launcher.disks.claim import shared_directories
from controlplane.virt_launcher.disks.prepare import prepare, write_report
from controlplane.virt_launcher.errors import PreparationError
from controlplane.virt_launcher.guest import libvirtd

if TYPE_CHECKING:
    from controlplane.virt_launcher.guest.watch import GuestExit

TERMINATION_LOG = "/dev/termination-log"
_TERMINATION_LIMIT = 4096

log = logging.getLogger("controlplane.virt_launcher")


@dataclass(frozen=True, slots=True)
class Settings:
    """The launch plan and the environment of the Pod."""

    plan: LaunchPlan
    log_level: str

    @classmethod
    def read(cls, environment: dict[str, str], plan: str) -> Settings:
        """Read the environment and the plan's file. ValueError names what is missing or wrong."""
        try:
            with open(plan, "rb") as file:
                data = file.read(PLAN_LIMIT_BYTES + 1)
        except OSError as error:
            raise ValueError(f"cannot read the launch plan: {error}") from error
        return cls(plan=parse_plan(data), log_level=environment.get("LOG_LEVEL") or "INFO")


class Stopped(BaseException):
    """SIGTERM arrived before there was a guest to shut down."""


def main() -> int:
    """Run the launcher; return the exit code: 0 when the guest shut down, otherwise 1."""
    signal.signal(signal.SIGTERM, _stop)  # until supervise.py handles it
    try:
        return _run()
    except Stopped:
        return _end("the Pod was ended before its guest ran", 1)


def _stop(*_unused: object) -> NoReturn:
    raise Stopped


def _run() -> int:
    os.umask(0o027)
    try:
        settings = Settings.read(dict(os.environ), f"{layout.PLAN_DIRECTORY}/{layout.PLAN_FILE}")
        logs.configure("virt-launcher", settings.log_level)
    except ValueError as error:
        return _end(f"InvalidPlan: {error}", 1)
    never_block_on_stderr()
    log.info("preparing", extra={"key": settings.plan.title})
    try:
        libvirtd.make_home(shared_directories(settings.plan.claim_disks))
        process = libvirtd.spawn()  # after a failure it ends with the container
        report = prepare(settings.plan)
        write_report(report, f"{layout.RUN}/{layout.REPORT}")
    except PreparationError as error:
        return _end(str(error), 1)
    except OSError as error:
        return _end(f"PreparationFailed: {error}", 1)
    log.info("prepared", extra={"key": settings.plan.title, "disks": len(report.container_disks)})
    guest_exit = _supervise(settings.plan, process)
    return _end(guest_exit.message, guest_exit.exit_code)


def _supervise(plan: LaunchPlan, process: subprocess.Popen[bytes]) -> GuestExit:
    import asyncio  # noqa: PLC0415 - loads while libvirtd starts

    from controlplane.virt_launcher.guest.supervise import supervise  # noqa: PLC0415 - the same

    return asyncio.run(supervise(plan, process))


def never_block_on_stderr() -> None:
    """Drop log lines instead of blocking when the container runtime does not read them."""
    os.set_blocking(sys.stderr.fileno(), False)
    logging.raiseExceptions = False


def _end(message: str, code: int) -> int:
    """Write the termination log, which the kubelet copies into the Pod's status."""
    log.info("ending", extra={"because": message, "exit_code": code})
    try:
        with open(TERMINATION_LOG, "wb") as file:
            # The message may contain names from an image, in any encoding.
            file.write(message.encode(errors="backslashreplace")[:_TERMINATION_LIMIT])
    except OSError as error:
        log.warning("cannot write the termination log", extra={"error": str(error)})
    return code


if __name__ == "__main__":
    sys.exit(main())
