# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt's fields that this version does not implement, by type. Data only.

To implement one: add it to its struct and delete it here. A test fails when it is in both places.
"""

from __future__ import annotations

UNBUILT: dict[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "VirtualMachineSpec": "instancetype preference updateVolumesStrategy",
        "VirtualMachineInstanceSpec": """
            accessCredentials resourceClaims serviceAccountName utilityVolumes""",
        "DomainSpec": "chassis ioThreads ioThreadsPolicy launchSecurity",
        "Cpu": "dedicatedCpuPlacement features isolateEmulatorThread numa realtime",
        "Memory": "hugepages reservedOverhead",
        "Firmware": "acpi",
        "Efi": "persistent",
        "Features": "hyperv hypervPassthrough kvm pvspinlock",
        "DeviceSpec": """
            autoattachInputDevice autoattachVSOCK blockMultiQueue clientPassthrough disableHotplug downwardMetrics
            filesystems gpus hostDevices inputs logSerialConsole networkInterfaceMultiqueue sound tpm
            useVirtioTransitional video""",
        "Watchdog": "diag288",
        "Disk": "blockSize changedBlockTracking dedicatedIOThread errorPolicy io lun tag",
        "DiskTarget": "pciAddress",
        "Interface": """
            acpiIndex binding bridge dhcpOptions macvtap passt passtBinding pciAddress portRanges slirp sriov state
            tag""",
        "Volume": """
            cloudInitConfigDrive configMap containerPath downwardAPI downwardMetrics ephemeral hostDisk
            memoryDump secret serviceAccount sysprep""",
        "PersistentVolumeClaimSource": "hotpluggable",
        "DataVolumeSource": "hotpluggable",
        "HttpGet": "host",
        "TcpSocket": "host",
        "Network": "multus resourceClaim",
        "PodNetwork": "vmIPv6NetworkCIDR",
        "KubeVirtSpec": """
            customizeComponents imagePullSecrets imageRegistry imageTag infra monitorAccount
            monitorNamespace productComponent productName productVersion serviceMonitorNamespace synchronizationPort
            uninstallStrategy workloads""",
        "KubeVirtSelfSignConfiguration": "caOverlapInterval caRotateInterval certRotateInterval",
        "KubeVirtConfiguration": """
            additionalGuestMemoryOverheadRatio apiConfiguration architectureConfiguration
            autoCPULimitNamespaceLabelSelector changedBlockTrackingLabelSelectors commonInstancetypesDeployment
            confidentialCompute controllerConfiguration defaultRuntimeClass handlerConfiguration hypervisors
            instancetype ksmConfiguration mediatedDevicesConfiguration memBalloonStatsPeriod
            minCPUModel network obsoleteCPUModels ovmfPath permittedHostDevices
            persistentReservationConfiguration roleAggregationStrategy selinuxLauncherType smbios
            supportContainerResources supportedGuestAgentVersions virtTemplateDeployment
            virtualMachineInstancesPerNode virtualMachineOptions vmStateStorageClass
            webhookConfiguration""",
        "MigrationConfiguration": """
            allowPostCopy disableTLS matchSELinuxLevelOnMigration maxDowntimeMs network
            unsafeMigrationOverride utilityVolumesTimeout""",
        "LogVerbosity": "virtSynchronizationController",
        "MigrationPolicySpec": "allowPostCopy experimental maxDowntimeMs",
        "VirtualMachineInstanceMigrationSpec": "receive sendTo",
        "VirtualMachinePoolSpec": "autohealing",
        "DeveloperConfiguration": """
            clusterProfiler disabledFeatureGates diskVerification minimumClusterTSCFrequency
            minimumReservePVCBytes nodeSelectors pvcTolerateLessSpaceUpToPercent""",
    }.items()
}

ELSEWHERE: dict[tuple[str, str], str] = {
    ("MigrationConfiguration", "network"): (
        "chosen when the control plane is deployed in this version; remove it, and deploy with "
        "control_plane_migration_network of role control_plane"
    )
}
"""Those of them, by type and name, that are asked for in another way, and how."""

ONE_OF: dict[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "Disk": "cdrom disk lun",
        "Interface": "binding bridge macvtap masquerade passt passtBinding slirp sriov",
        "Network": "multus pod resourceClaim",
        "Watchdog": "diag288 i6300esb",
        "Volume": """
            cloudInitConfigDrive cloudInitNoCloud configMap containerDisk containerPath dataVolume downwardAPI
            downwardMetrics emptyDisk ephemeral hostDisk memoryDump persistentVolumeClaim secret serviceAccount
            sysprep""",
    }.items()
}
"""Fields of which an object has one, built or not: without one that is not built it needs another."""

OFF_WHEN_FALSE = frozenset(
    [
        "allowPostCopy",
        "autoattachInputDevice",
        "autoattachVSOCK",
        "blockMultiQueue",
        "changedBlockTracking",
        "dedicatedCpuPlacement",
        "dedicatedIOThread",
        "hotpluggable",
        "disableHotplug",
        "disableTLS",
        "isolateEmulatorThread",
        "matchSELinuxLevelOnMigration",
        "networkInterfaceMultiqueue",
        "unsafeMigrationOverride",
        "useVirtioTransitional",
    ]
)
"""Unbuilt switches whose false asks for nothing, so false is no reason to refuse an object."""

INFERABLE: dict[str, frozenset[str]] = {"VirtualMachineSpec": frozenset({"instancetype", "preference"})}
"""Unbuilt references that may ask for nothing: a volume is to name what they refer to, else they are left out."""

TOLERATED: dict[str, frozenset[str]] = {
    "ObjectMeta": frozenset({"managedFields", "selfLink"}),
    "DataVolumeTemplate": frozenset({"apiVersion", "kind", "status"}),
}
"""Fields that manifests drag along and that ask for nothing."""

EMPTY_ALLOWED = frozenset({"KubeVirtSpec", "KubeVirtConfiguration"})
"""Types whose unbuilt members ask for nothing when they are empty objects, as in upstream's own KubeVirt manifest."""
