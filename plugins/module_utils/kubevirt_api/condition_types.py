# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the conditions of VirtualMachines and VirtualMachineInstances, and reasons that both sides know."""

from __future__ import annotations

READY = "Ready"
SYNCHRONIZED = "Synchronized"
"""Only ever False: the last attempt failed, the reason says at what."""
POD_SCHEDULED = "PodScheduled"
"""Only ever False: the scheduler found no node."""
PAUSED = "Paused"
LIVE_MIGRATABLE = "LiveMigratable"
AGENT_CONNECTED = "AgentConnected"
SOFTWARE_EMULATION = "SoftwareEmulation"
"""True: the machine runs without KVM."""
FAILURE = "Failure"
"""On a VirtualMachine: what could not be done."""
RESTART_REQUIRED = "RestartRequired"
"""On a VirtualMachine: a change takes effect at the next start."""
REPLICA_FAILURE = "ReplicaFailure"
"""On a VirtualMachineInstanceReplicaSet: what could not be done."""
REPLICA_PAUSED = "ReplicaPaused"

# Reasons
VMI_NOT_EXISTS = "VMINotExists"
POD_NOT_EXISTS = "PodNotExists"
POD_TERMINATING = "PodTerminating"
GUEST_NOT_RUNNING = "GuestNotRunning"
UNSCHEDULABLE = "Unschedulable"
FAILED_CREATE = "FailedCreate"
FAILED_DELETE = "FailedDelete"
FAILED_UPDATE = "FailedUpdate"
FAILED_START = "FailedStart"
"""Of a VirtualMachine's Failure: its last instance ended before it ran, and the next start waits."""
FURTHER_ATTEMPT = "FurtherAttempt"
"""Of Synchronized: the run did not begin on a node and is tried again."""
RUN_TIMED_OUT = "RunTimedOut"
"""The launcher did not come up in the time that it had."""
ERR_IMAGE_PULL = "ErrImagePull"
IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
