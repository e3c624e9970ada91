# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cloudInitNoCloud: a seed that the launcher makes of inline text and of mounted Secrets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json

from controlplane.api import launch_plan
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import CloudInitNoCloud
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import DiskImage, InPod, Mounted, VolumeKind, read_only

SEED_BYTES = 1024 * 1024
"""An ISO with three files of at most 64 KiB each takes 576 KiB."""
_USER_DATA = "userdata"
_NETWORK_DATA = "networkdata"


def _in_pod(name: str, source: CloudInitNoCloud, _claims: Claims) -> InPod:
    parts = ((_USER_DATA, source.secret_ref), (_NETWORK_DATA, source.network_data_secret_ref))
    return InPod(
        mounted=tuple(_secret(name, part, reference.name) for part, reference in parts if reference is not None)
    )


def _secret(volume: str, part: str, secret: str) -> Mounted:
    """Mount a whole Secret: a missing Secret keeps the Pod waiting, and both spellings of its key work."""
    name = f"{part}-{hashlib.sha256(volume.encode()).hexdigest()[:16]}"
    source = {"secretName": secret, "defaultMode": 0o440}
    return read_only({"name": name, "secret": source}, layout.cloud_init_secret(volume, part))


def _in_plan(name: str, source: CloudInitNoCloud, guest: GuestIdentity, _claims: Claims) -> launch_plan.DiskSource:
    return launch_plan.CloudInit(
        volume=name,
        # JSON is YAML, and escapes every name.
        meta_data=json.dumps({"instance-id": guest.uuid, "local-hostname": guest.hostname}),
        user_data=_inline(name, "userDataBase64", source.user_data, source.user_data_base64),
        user_data_file=_mounted(name, _USER_DATA) if source.secret_ref else None,
        network_data=_inline(name, "networkDataBase64", source.network_data, source.network_data_base64),
        network_data_file=_mounted(name, _NETWORK_DATA) if source.network_data_secret_ref else None,
    )


def _inline(volume: str, member: str, text: str, encoded: str) -> str | None:
    if not encoded:
        return text or None
    try:
        return base64.b64decode("".join(encoded.split()), validate=True).decode()  # YAML blocks end in a newline
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"volume {volume}: {member} is not base64 of UTF-8 text; use a Secret for other data"
        ) from error


def _mounted(volume: str, part: str) -> str:
    return f"{layout.cloud_init_secret(volume, part)}/{part}"


def _in_domain(name: str, _source: CloudInitNoCloud, _report: launch_plan.LauncherReport) -> DiskImage:
    return DiskImage(layout.cloud_init_iso(name), "raw")


def _takes(_source: CloudInitNoCloud, _unused: int) -> int:
    return SEED_BYTES


KIND = VolumeKind(member="cloud_init_no_cloud", in_pod=_in_pod, takes=_takes, in_plan=_in_plan, in_domain=_in_domain)
