# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects the parts of a cloudInitNoCloud volume: from the plan, and from mounted Secrets."""

from __future__ import annotations

from seed_image.no_cloud import PART_LIMIT_BYTES, PartTooLargeError, write_seed

from controlplane.api.launch_plan import CloudInit
from controlplane.virt_launcher.errors import PreparationError

_SPELLINGS = {"userdata": "userData", "networkdata": "networkData"}
"""Both spellings of a Secret's key are accepted."""


def build_seed(plan: CloudInit) -> bytes:
    """Return the ISO of a cloudInitNoCloud volume. PreparationError when a part is missing or too large."""
    user_data = _part(plan.volume, "user data", plan.user_data, plan.user_data_file)
    network_data = _part(plan.volume, "network data", plan.network_data, plan.network_data_file)
    try:
        return write_seed(plan.meta_data.encode(), user_data, network_data)
    except PartTooLargeError as error:
        raise PreparationError("CloudInitTooLarge", f"volume {plan.volume}: {error}") from error


def _part(volume: str, part: str, inline: str | None, path: str | None) -> bytes | None:
    if inline is not None:
        return inline.encode()
    return None if path is None else _read(volume, part, path)


def _read(volume: str, part: str, path: str) -> bytes:
    """Read a key of a mounted Secret, at most one byte more than a seed can contain.

    It follows links: the kubelet makes each key a link inside the mount, and the path comes from the plan.
    """
    directory, _unused, key = path.rpartition("/")
    names = tuple(dict.fromkeys((key, _SPELLINGS.get(key, key))))
    for name in names:
        try:
            with open(f"{directory}/{name}", "rb") as file:
                return file.read(PART_LIMIT_BYTES + 1)
        except FileNotFoundError:
            continue
        except OSError as error:
            message = f"volume {volume}: cannot read the {part} of its Secret: {error.strerror}"
            raise PreparationError("InvalidCloudInit", message) from error
    message = f"volume {volume}: the Secret with the {part} has no key {' nor '.join(names)}"
    raise PreparationError("InvalidCloudInit", message)
