# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of status.printableStatus of a VirtualMachine."""

from __future__ import annotations

TERMINATING = "Terminating"
STOPPING = "Stopping"
MIGRATING = "Migrating"
PAUSED = "Paused"
RUNNING = "Running"
PVC_NOT_FOUND = "ErrorPvcNotFound"
DATA_VOLUME_ERROR = "DataVolumeError"
UNSCHEDULABLE = "ErrorUnschedulable"
PROVISIONING = "Provisioning"
WAITING_FOR_VOLUME_BINDING = "WaitingForVolumeBinding"
ERR_IMAGE_PULL = "ErrImagePull"
IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
STARTING = "Starting"
CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
STOPPED = "Stopped"
UNKNOWN = "Unknown"
