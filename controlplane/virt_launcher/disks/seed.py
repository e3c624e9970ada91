# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes into a NoCloud seed, and how much of it."""

from __future__ import annotations

from controlplane.api.launch_plan import CloudInit
from controlplane.virt_launcher.disks.iso import write_iso
from controlplane.virt_launcher.errors import PreparationError

LABEL = "cidata"
PART_LIMIT_BYTES = 64 * 1024
_SPELLINGS = {"userdata": "userData", "networkdata": "networkData"}
"""A Secret's key may be spelled either way."""


def build_seed(plan: CloudInit) -> bytes:
    """Return the ISO of a cloudInitNoCloud volume. PreparationError when a part is missing or too large."""
    files = {
        "meta-data": plan.meta_data.encode(),
        "user-data": _part(plan.volume, "user data", plan.user_data, plan.user_data_file) or b"",
    }
    network = _part(plan.volume, "network data", plan.network_data, plan.network_data_file)
    if network is not None:
        files["network-config"] = network
    return write_iso(LABEL, files)


def _part(volume: str, what: str, inline: str | None, path: str | None) -> bytes | None:
    data = inline.encode() if inline is not None else None if path is None else _read(volume, what, path)
    if data is not None and len(data) > PART_LIMIT_BYTES:
        message = f"volume {volume}: the {what} has over {PART_LIMIT_BYTES} bytes, more than a seed carries"
        raise PreparationError("CloudInitTooLarge", message)
    return data


def _read(volume: str, what: str, path: str) -> bytes:
    """Read a mounted Secret's key. The kubelet makes it a link inside the mount; the path itself is the plan's."""
    directory, _unused, key = path.rpartition("/")
    for name in (key, _SPELLINGS.get(key, key)):
        try:
            with open(f"{directory}/{name}", "rb") as file:
                return file.read(PART_LIMIT_BYTES + 1)
        except FileNotFoundError:
            continue
        except OSError as error:
            message = f"volume {volume}: cannot read the {what} of its Secret: {error.strerror}"
            raise PreparationError("InvalidCloudInit", message) from error
    keys = " nor ".join(dict.fromkeys((key, _SPELLINGS.get(key, key))))
    raise PreparationError("InvalidCloudInit", f"volume {volume}: the Secret with the {what} has no key {keys}")
