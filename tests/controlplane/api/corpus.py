# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed machines: one change to a good machine, the field that the error must name, and words it must contain.

Each row sets one path of tests/controlplane/golden/objects/vm-full.yaml. SPEC is the spec of the instance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SPEC = "spec/template/spec"
DOMAIN = f"{SPEC}/domain"
DISK = f"{DOMAIN}/devices/disks/0"
NIC = f"{DOMAIN}/devices/interfaces/0"
SEED = f"{SPEC}/volumes/2/cloudInitNoCloud"
ROOT = {"name": "root"}
IMAGE = f"{SPEC}/volumes/0/containerDisk"
CLAIM = f"{SPEC}/volumes/3/persistentVolumeClaim"
PANICS = f"{DOMAIN}/devices/panicDevices"
WATCHDOG = f"{DOMAIN}/devices/watchdog"
LIVENESS = f"{SPEC}/livenessProbe"
DATA_VOLUMES = "spec/dataVolumeTemplates"
NAMED = {"metadata": {"name": "a"}}
PING = {"guestAgentPing": {}}
PAUSED = {"startStrategy": "Paused", "domain": {"memory": {"guest": "1Gi"}, "devices": {}}}
ONE_HANDLER = ("spec.livenessProbe", "has exec and tcpSocket; a probe has exactly one")
SECOND = {"networkName": "storage"}


REQUIRED, PREFERRED = (f"{item}DuringSchedulingIgnoredDuringExecution" for item in ("required", "preferred"))
NODES = f"{SPEC}/affinity/nodeAffinity/{REQUIRED}"
BETTER_NODES = f"{SPEC}/affinity/nodeAffinity/{PREFERRED}"
AWAY = f"{SPEC}/affinity/podAntiAffinity/{REQUIRED}"
HOST = {"topologyKey": "kubernetes.io/hostname"}


def a_term(rule: str, parts: list[Any]) -> dict[str, Any]:
    """Return a node requirement with one term."""
    return {"nodeSelectorTerms": [{rule: parts}]}


def asked(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement on one label."""
    return a_term("matchExpressions", [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}])


def named(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement on one field."""
    return a_term("matchFields", [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}])


class Row(NamedTuple):
    """One malformed machine."""

    title: str
    set: str
    value: Any
    field: str
    words: str


def deep(levels: int) -> Any:
    """Nest objects."""
    value: Any = {}
    for _unused in range(levels):
        value = {"a": value}
    return value


SHAPE = [
    Row("misspelt template", "spec/tempalte", {}, "spec.tempalte", "did you mean template"),
    Row("misspelt spec", "sepc", {}, "sepc", "did you mean spec"),
    Row("misspelt domain", f"{SPEC}/domian", {}, "spec.domian", "did you mean domain"),
    Row("name in upper case", "metadata/name", "My_VM", "metadata.name", "DNS subdomain"),
    Row("name of 254 characters", "metadata/name", "a" * 254, "metadata.name", "at most 253"),
    Row("name that climbs", "metadata/name", "../../etc", "metadata.name", "DNS subdomain"),
    Row("name with a bidi override", "metadata/name", "a\u202eb", "metadata.name", "\\u202e"),
    Row("name with a zero byte", "metadata/name", "a\0b", "metadata.name", "\\u0000"),
    Row(
        "further attempts that are no number",
        "spec/template/metadata/annotations",
        {"virtops.kubevirt/further-attempts": "many"},
        "spec.template.metadata.annotations[virtops.kubevirt/further-attempts]",
        "a whole number from 0 to 10",
    ),
    Row(
        "a run time-out of more than a day",
        "spec/template/metadata/annotations",
        {"virtops.kubevirt/run-timeout-seconds": "86401"},
        "spec.template.metadata.annotations[virtops.kubevirt/run-timeout-seconds]",
        "a whole number from 0 to 86400",
    ),
    Row(
        "label with a newline",
        "spec/template/metadata/labels",
        {"x": "a\nb"},
        "spec.template.metadata.labels[x]",
        "label value",
    ),
    Row(
        "reserved label",
        "spec/template/metadata/labels",
        {"kubevirt.io/nodeName": "n1"},
        "spec.template.metadata.labels[kubevirt.io/nodeName]",
        "reserved",
    ),
    Row(
        "log filters",
        "spec/template/metadata/annotations",
        {"kubevirt.io/libvirt-log-filters": '1:*"\nuser="root'},
        "spec.template.metadata.annotations[kubevirt.io/libvirt-log-filters]",
        "not built",
    ),
    Row(
        "a launcher outlives its failure",
        "spec/template/metadata/annotations",
        {"kubevirt.io/keep-launcher-alive-after-failure": "true"},
        "spec.template.metadata.annotations[kubevirt.io/keep-launcher-alive-after-failure]",
        "not built",
    ),
    Row("misspelt labels", "spec/template/metadata/lables", {}, "spec.template.metadata.lables", "did you mean labels"),
    Row("running and runStrategy", "spec/running", True, "spec.running", "exclude each other"),
    Row("neither of them", "spec/runStrategy", ..., "spec.runStrategy", "required; set Always, Halted"),
    Row("a strategy nobody knows", "spec/runStrategy", "Sometimes", "spec.runStrategy", "Always, Halted, Manual"),
    Row("a strategy not built", "spec/runStrategy", "WaitAsReceiver", "spec.runStrategy", "not built"),
    Row("no template", "spec/template", ..., "spec.template", "is required"),
    Row("template is a list", "spec/template", [], "spec.template", "must be an object, got a list"),
    Row("no domain", DOMAIN, ..., "spec.template.spec.domain", "is required"),
    Row("spec is text", "spec", "text", "spec", "must be an object"),
    Row("a data volume without spec", "spec/dataVolumeTemplates", [{}], "dataVolumeTemplates[0].spec", "is required"),
    Row("data volumes in a map", "spec/dataVolumeTemplates", {}, "spec.dataVolumeTemplates", "must be a list"),
    Row("a data volume without a name", DATA_VOLUMES, [{"spec": {"source": {}}}], "[0].metadata.name", "is required"),
    Row("a data volume of nothing", DATA_VOLUMES, [{**NAMED, "spec": {}}], "dataVolumeTemplates[0].spec", "set source"),
    Row(
        "a data volume of elsewhere",
        DATA_VOLUMES,
        [{"metadata": {"name": "a", "namespace": "other"}, "spec": {"source": {"blank": {}}}}],
        "dataVolumeTemplates[0].metadata.namespace",
        "not the VirtualMachine's namespace",
    ),
    Row("an instance type", "spec/instancetype", {"name": "u1"}, "spec.instancetype", "not built"),
]

COMPUTE = [
    Row("no core", f"{DOMAIN}/cpu/cores", 0, "domain.cpu.cores", "from 1 to 1024"),
    Row("negative cores", f"{DOMAIN}/cpu/cores", -1, "domain.cpu.cores", "from 1 to 1024"),
    Row("half a core", f"{DOMAIN}/cpu/cores", 1.5, "domain.cpu.cores", "whole number, got 1.5"),
    Row("cores as text", f"{DOMAIN}/cpu/cores", "2", "domain.cpu.cores", "whole number"),
    Row("cores true", f"{DOMAIN}/cpu/cores", True, "domain.cpu.cores", "whole number"),
    Row("cores beyond 64 bits", f"{DOMAIN}/cpu/cores", 2**70, "domain.cpu.cores", "from 1 to 1024"),
    Row(
        "too many vCPUs",
        f"{DOMAIN}/cpu",
        {"cores": 1024, "sockets": 1024, "threads": 1024},
        "domain.cpu",
        "at most 255",
    ),
    Row("dedicated CPUs", f"{DOMAIN}/cpu/dedicatedCpuPlacement", True, "domain.cpu.dedicatedCpuPlacement", "not built"),
    Row(
        "three threads on dedicated CPUs",
        f"{DOMAIN}/cpu",
        {"threads": 3, "dedicatedCpuPlacement": True},
        "domain.cpu.dedicatedCpuPlacement",
        "not built",
    ),
    Row(
        "a thread of the emulator's own",
        f"{DOMAIN}/cpu/isolateEmulatorThread",
        True,
        "domain.cpu.isolateEmulatorThread",
        "not built",
    ),
    Row(
        "dedicated CPUs, fewer asked for than allowed",
        DOMAIN,
        {
            "cpu": {"dedicatedCpuPlacement": True},
            "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3"}},
        },
        "domain.cpu.dedicatedCpuPlacement",
        "not built",
    ),
    Row(
        "half a dedicated CPU",
        DOMAIN,
        {"cpu": {"dedicatedCpuPlacement": True}, "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        "domain.cpu.dedicatedCpuPlacement",
        "not built",
    ),
    Row("more sockets than ever", f"{DOMAIN}/cpu", {"sockets": 8, "maxSockets": 4}, "cpu.maxSockets", "below sockets"),
    Row(
        "more sockets than fit later",
        f"{DOMAIN}/cpu",
        {"cores": 4, "sockets": 1, "maxSockets": 64},
        "cpu.maxSockets",
        "so 63 sockets of these",
    ),
    Row("2^32 vCPUs", f"{DOMAIN}/cpu", {"cores": 1024, "sockets": 1024, "threads": 4096}, "cpu.threads", "from 1 to"),
    Row(
        "a feature that may be",
        f"{DOMAIN}/cpu/features",
        [{"name": "x", "policy": "maybe"}],
        "domain.cpu.features",
        "not built",
    ),
    Row("10000 features", f"{DOMAIN}/cpu/features", [{"name": "x"}] * 10000, "domain.cpu.features", "not built"),
    Row("model with a command", f"{DOMAIN}/cpu/model", "host-model;rm -rf /", "domain.cpu.model", "must be letters"),
    Row("request above limit", f"{DOMAIN}/resources/requests/cpu", "3", "resources.requests[cpu]", "above limits"),
    Row("negative cpu", f"{DOMAIN}/resources/requests/cpu", "-1", "resources.requests[cpu]", "from 0 to 1024"),
    Row("no cpu at all", f"{DOMAIN}/resources/limits/cpu", "0", "resources.limits[cpu]", "must be more than 0"),
    Row("no memory", DOMAIN, {"devices": {}}, "domain.memory.guest", "set memory.guest"),
    Row("negative memory", f"{DOMAIN}/memory/guest", "-1Gi", "domain.memory.guest", "must be positive"),
    Row("hardly any memory", f"{DOMAIN}/memory/guest", "512Ki", "domain.memory.guest", "at least 1M"),
    Row("1e30 of memory", f"{DOMAIN}/memory/guest", "1e30", "domain.memory.guest", "at most 16Ti"),
    Row("2^63 of memory", f"{DOMAIN}/memory/guest", "9223372036854775808", "domain.memory.guest", "at most 16Ti"),
    Row("1Gib of memory", f"{DOMAIN}/memory/guest", "1Gib", "domain.memory.guest", "not a quantity"),
    Row(
        "a small guest that may grow",
        f"{DOMAIN}/memory",
        {"guest": "512Mi", "maxGuest": "1Gi"},
        "maxGuest",
        "needs 1Gi",
    ),
    Row("more than it may have", f"{DOMAIN}/memory", {"guest": "2Gi", "maxGuest": "1Gi"}, "maxGuest", "above maxGuest"),
    Row("no whole blocks", f"{DOMAIN}/memory", {"guest": "1025Mi", "maxGuest": "4Gi"}, "maxGuest", "multiple of 2Mi"),
    Row(
        "a limit of no whole blocks", f"{DOMAIN}/memory", {"guest": "1Gi", "maxGuest": "1025Mi"}, "maxGuest", "multiple"
    ),
    Row("too high a limit", f"{DOMAIN}/memory", {"guest": "1Gi", "maxGuest": "32Ti"}, "maxGuest", "at most 16Ti"),
    Row("a limit that is none", f"{DOMAIN}/memory", {"guest": "1Gi", "maxGuest": "1Gib"}, "maxGuest", "not a quantity"),
    Row("memory is a list", f"{DOMAIN}/memory/guest", ["1Gi"], "domain.memory.guest", "must be a quantity"),
    Row("guest above limit", f"{DOMAIN}/memory/guest", "4Gi", "domain.memory.guest", "limits[memory]"),
    Row(
        "request above the limit",
        f"{DOMAIN}/resources/requests/memory",
        "3Gi",
        "resources.requests[memory]",
        "above limits",
    ),
    Row("hugepages", f"{DOMAIN}/memory/hugepages", {"pageSize": "3Mi"}, "domain.memory.hugepages", "not built"),
    Row(
        "half a huge page",
        f"{DOMAIN}/memory",
        {"guest": "65Mi", "hugepages": {"pageSize": "2Mi"}},
        "domain.memory.hugepages",
        "not built",
    ),
    Row(
        "a GPU as a resource",
        f"{DOMAIN}/resources/limits",
        {"nvidia.com/gpu": "1"},
        "limits[nvidia.com/gpu]",
        "only cpu and memory",
    ),
    Row(
        "a machine with options",
        f"{DOMAIN}/machine/type",
        "q35,kernel-irqchip=off",
        "domain.machine.type",
        "must be letters",
    ),
    Row("a machine nobody has", f"{DOMAIN}/machine/type", "microvm", "domain.machine.type", "allowed: q35"),
    Row("architecture mips", f"{SPEC}/architecture", "mips", "spec.architecture", "allowed: amd64"),
    Row("architecture arm64", f"{SPEC}/architecture", "arm64", "spec.architecture", "not built"),
    Row("not a UUID", f"{DOMAIN}/firmware/uuid", "not-a-uuid", "domain.firmware.uuid", "must be a UUID"),
    Row("serial closes a tag", f"{DOMAIN}/firmware/serial", "</serial>", "domain.firmware.serial", "must be letters"),
    Row("serial rings", f"{DOMAIN}/firmware/serial", "a\x07b", "domain.firmware.serial", "\\u0007"),
    Row("bios and efi", f"{DOMAIN}/firmware/bootloader", {"bios": {}, "efi": {}}, "firmware.bootloader", "exclude"),
    Row("secure boot without SMM", f"{DOMAIN}/firmware/bootloader", {"efi": {}}, "bootloader.efi.secureBoot", "smm"),
    Row(
        "kernel arguments alone",
        f"{DOMAIN}/firmware/kernelBoot",
        {"kernelArgs": "quiet"},
        "kernelBoot.kernelArgs",
        "need a kernel",
    ),
    Row(
        "kernel path climbs",
        f"{DOMAIN}/firmware/kernelBoot",
        {"container": {"image": "a", "kernelPath": "boot/../../../etc/shadow"}},
        "kernelBoot.container.kernelPath",
        "absolute path",
    ),
    Row(
        "kernel is the root",
        f"{DOMAIN}/firmware/kernelBoot",
        {"container": {"image": "a", "kernelPath": "/"}},
        "kernelBoot.container.kernelPath",
        "absolute path of a file",
    ),
    Row(
        "no kernel in the image",
        f"{DOMAIN}/firmware/kernelBoot",
        {"container": {"image": "a", "initrdPath": "/initrd"}},
        "kernelBoot.container.kernelPath",
        "is required",
    ),
    Row("two clocks", f"{DOMAIN}/clock/timezone", "Europe/Berlin", "domain.clock.timezone", "exclude each other"),
    Row("ticks", f"{DOMAIN}/clock/timer/pit/tickPolicy", "sometimes", "clock.timer.pit.tickPolicy", "allowed: delay"),
    Row(
        "negative grace",
        f"{SPEC}/terminationGracePeriodSeconds",
        -5,
        "spec.terminationGracePeriodSeconds",
        "from 0 to 86400",
    ),
    Row("a claim without a name", CLAIM, {"claimName": ""}, "persistentVolumeClaim.claimName", "is required"),
    Row("a claim that climbs", CLAIM, {"claimName": "../x"}, "persistentVolumeClaim.claimName", "DNS subdomain"),
    Row("a claim of elsewhere", CLAIM, {"claimName": "ns/x"}, "persistentVolumeClaim.claimName", "DNS subdomain"),
    Row("a claim to plug in", CLAIM, {"claimName": "a", "hotpluggable": True}, "hotpluggable", "not built"),
    Row(
        "a read-only claim as a sata disk",
        f"{SPEC}/volumes/1",
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "a", "readOnly": True}},
        "volumes[1].persistentVolumeClaim.readOnly",
        "use bus virtio",
    ),
    Row(
        "a claim used twice",
        f"{SPEC}/volumes/1",
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "data"}},
        "volumes[3].persistentVolumeClaim.claimName",
        "already used",
    ),
    Row("a reboot that is neither", f"{DOMAIN}/rebootPolicy", "Maybe", "domain.rebootPolicy", "allowed: Reboot, Termi"),
    Row("a reboot that is true", f"{DOMAIN}/rebootPolicy", True, "domain.rebootPolicy", "must be a string"),
    Row("a panic device of IBM", PANICS, [{"model": "s390"}], "panicDevices[0].model", "allowed: isa, hyperv, pvpanic"),
    Row("two panic devices alike", PANICS, [{"model": "isa"}, {}], "panicDevices[1].model", "of another one already"),
    Row("a panic device by name", PANICS, [{"name": "a"}], "panicDevices[0].name", "no such field"),
    Row("panic devices without end", PANICS, [{}] * 9, "devices.panicDevices", "at most 8"),
    Row("a watchdog without a name", WATCHDOG, {"i6300esb": {}}, "watchdog.name", "is required"),
    Row("a name that opens a tag", WATCHDOG, {"name": "<a", "i6300esb": {}}, "watchdog.name", "must be letters"),
    Row(
        "a watchdog of IBM", WATCHDOG, {"name": "a", "diag288": {"action": "reset"}}, "diag288", "use i6300esb instead"
    ),
    Row("a watchdog that bites", f"{WATCHDOG}/i6300esb/action", "pause", "i6300esb.action", "allowed: reset, poweroff"),
    Row("io threads", f"{DOMAIN}/ioThreadsPolicy", "turbo", "domain.ioThreadsPolicy", "not built"),
    Row(
        "eviction by prayer", f"{SPEC}/evictionStrategy", "Pray", "spec.evictionStrategy", "allowed: None, LiveMigrate"
    ),
    Row("lazy start", f"{SPEC}/startStrategy", "Lazy", "spec.startStrategy", "allowed: Paused"),
    Row("paused and to be alive", SPEC, {**PAUSED, "livenessProbe": PING}, "spec.startStrategy", "remove one"),
    Row("a probe that asks twice", LIVENESS, {"tcpSocket": {"port": 80}, "exec": {"command": ["a"]}}, *ONE_HANDLER),
    Row("a probe that asks nothing", LIVENESS, {"periodSeconds": 5}, "spec.livenessProbe", "set one of exec"),
    Row("a ping with settings", LIVENESS, {"guestAgentPing": {"a": 1}}, "guestAgentPing", "takes no settings"),
    Row("a probe of port 0", LIVENESS, {"tcpSocket": {"port": 0}}, "tcpSocket.port", "from 1 to 65535"),
    Row("a port by name", LIVENESS, {"tcpSocket": {"port": "http"}}, "tcpSocket.port", "a whole number"),
    Row("a port not forwarded", LIVENESS, {"httpGet": {"port": 79}}, "httpGet.port", "add it to the ports"),
    Row(
        "a probe of another host",
        LIVENESS,
        {"httpGet": {"port": 80, "host": "169.254.169.254"}},
        "livenessProbe.httpGet.host",
        "remove it",
    ),
    Row("liveness said twice", LIVENESS, {**PING, "successThreshold": 2}, "successThreshold", "must be 1"),
    Row("an empty command", LIVENESS, {"exec": {"command": []}}, "exec.command", "must name a program"),
    Row("an empty program", LIVENESS, {"exec": {"command": ["", "x"]}}, "exec.command", "must name a program"),
    Row("a long command", LIVENESS, {"exec": {"command": ["a" * 1000] * 5}}, "exec.command", "at most 4096"),
    Row("a zero byte", LIVENESS, {"exec": {"command": ["a\0b"]}}, "exec.command", "zero byte"),
    Row("a bad header", LIVENESS, {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}}, "name", "header"),
    Row(
        "node selector of 64 characters", f"{SPEC}/nodeSelector", {"a": "b" * 64}, "spec.nodeSelector[a]", "at most 63"
    ),
    Row("no nameserver", f"{SPEC}/dnsConfig/nameservers", ..., "spec.dnsConfig.nameservers", "set them"),
    Row("no resolver", f"{SPEC}/dnsConfig", ..., "spec.dnsConfig.nameservers", "set them"),
    Row("four nameservers", f"{SPEC}/dnsConfig/nameservers", ["192.0.2.1"] * 4, "dnsConfig.nameservers", "at most 3"),
    Row("seven searches", f"{SPEC}/dnsConfig/searches", ["a"] * 7, "dnsConfig.searches", "at most 6"),
    Row(
        "300 characters of searches",
        f"{SPEC}/dnsConfig/searches",
        ["a" * 150, "b" * 150],
        "dnsConfig.searches",
        "at most 256",
    ),
    Row(
        "a nameserver by name",
        f"{SPEC}/dnsConfig/nameservers",
        ["dns"],
        "dnsConfig.nameservers[0]",
        "not an IP address",
    ),
    Row("affinity for nothing", f"{SPEC}/affinity/nodeAfinity", {}, "spec.affinity.nodeAfinity", "nodeAffinity"),
    Row("affinity in a list", f"{SPEC}/affinity", {"nodeAffinity": []}, "affinity.nodeAffinity", "must be an object"),
    Row("no terms", NODES, {"nodeSelectorTerms": []}, "nodeSelectorTerms", "at least one term"),
    Row("terms that are missing", NODES, {}, "nodeSelectorTerms", "is required"),
    Row("a misspelt term", NODES, a_term("matchExpresions", []), "matchExpresions", "did you mean matchExpressions"),
    Row(
        "an operator nobody has", NODES, asked("zone", "Is", "a"), "matchExpressions[0].operator", "allowed: In, NotIn"
    ),
    Row("an expression without operator", NODES, a_term("matchExpressions", [{"key": "a"}]), "operator", "is required"),
    Row("a key that is none", NODES, asked("a b", "Exists"), "matchExpressions[0][a b]", "not a label key"),
    Row("In of nothing", NODES, asked("zone", "In"), "matchExpressions[0].values", "at least one value"),
    Row("Exists with values", NODES, asked("zone", "Exists", "a"), "matchExpressions[0].values", "takes no values"),
    Row("more than a word", NODES, asked("cores", "Gt", "many"), "matchExpressions[0].values", "one whole number"),
    Row("less than two", NODES, asked("cores", "Lt", "1", "2"), "matchExpressions[0].values", "one whole number"),
    Row("a label value with a space", NODES, asked("zone", "In", "a b"), "matchExpressions[0][zone]", "label value"),
    Row("another field", NODES, named("spec.nodeName", "In", "a"), "matchFields[0].key", "use metadata.name"),
    Row("two nodes by name", NODES, named("metadata.name", "In", "a", "b"), "matchFields[0].values", "exactly one"),
    Row("a node by operator", NODES, named("metadata.name", "Exists"), "matchFields[0].operator", "In or NotIn"),
    Row("a weight of 0", BETTER_NODES, [{"weight": 0, "preference": {}}], "[0].weight", "from 1 to 100"),
    Row("no weight", BETTER_NODES, [{"preference": {}}], "[0].weight", "is required"),
    Row("no preference", BETTER_NODES, [{"weight": 1}], "[0].preference", "is required"),
    Row("no topology", AWAY, [{"labelSelector": {}}], "[0].topologyKey", "is required"),
    Row("an empty topology", AWAY, [{"topologyKey": ""}], "[0].topologyKey", "is required"),
    Row("a topology with a space", AWAY, [{"topologyKey": "a b"}], "[0].topologyKey[a b]", "not a label key"),
    Row("a namespace that climbs", AWAY, [{**HOST, "namespaces": [".."]}], "namespaces[0]", "DNS label"),
    Row("a selector of nothing", AWAY, [{**HOST, "labelSelector": {"a": "b"}}], "labelSelector.a", "no such field"),
    Row(
        "a selector with a bad operator",
        AWAY,
        [{**HOST, "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}],
        "namespaceSelector.matchExpressions[0].operator",
        "allowed: In, NotIn",
    ),
    Row(
        "a selector that is met by no label",
        AWAY,
        [{**HOST, "labelSelector": {"matchLabels": {"a": "b c"}}}],
        "labelSelector.matchLabels[a]",
        "label value",
    ),
    Row(
        "keys of a selector of namespaces only",
        AWAY,
        [{**HOST, "namespaceSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["a"]}],
        "[0].matchLabelKeys",
        "needs a labelSelector",
    ),
    Row(
        "keys of no selector", AWAY, [{**HOST, "matchLabelKeys": ["a"]}], "[0].matchLabelKeys", "needs a labelSelector"
    ),
    Row(
        "a key that is to match and not",
        AWAY,
        [{**HOST, "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}],
        "[0].mismatchLabelKeys",
        "in matchLabelKeys, too",
    ),
    Row(
        "a weight for no Pods",
        f"{SPEC}/affinity/podAffinity/{PREFERRED}",
        [{"weight": 101, "podAffinityTerm": HOST}],
        f"podAffinity.{PREFERRED}[0].weight",
        "from 1 to 100",
    ),
    Row("affinity without end", f"{SPEC}/affinity", {"nodeAffinity": deep(70)}, "spec.affinity", "at most 64 levels"),
    Row(
        "seconds of a toleration without an effect",
        f"{SPEC}/tolerations",
        [{"key": "a", "operator": "Exists", "tolerationSeconds": 60}],
        "tolerations[0].effect",
        "needs effect NoExecute",
    ),
    Row(
        "toleration without key",
        f"{SPEC}/tolerations",
        [{"operator": "Equal"}],
        "tolerations[0].key",
        "operator is Exists",
    ),
    Row(
        "toleration of a value that no taint has",
        f"{SPEC}/tolerations",
        [{"key": "a", "value": "/"}],
        "tolerations[0].value",
        "is not a label value",
    ),
    Row("host name with a dot", f"{SPEC}/hostname", "a.b", "spec.hostname", "DNS label"),
]

STORAGE = [
    Row("disk without volume", f"{DISK}/name", "other", "disks[0].name", "no volume is called"),
    Row("two volumes with one name", f"{SPEC}/volumes/1/name", "root", "volumes[1].name", "already the name of"),
    Row("two disks with one name", f"{DOMAIN}/devices/disks/1/name", "root", "disks[1].name", "must be unique"),
    Row("volume without source", IMAGE, ..., "spec.volumes[0]", "exactly one of containerDisk"),
    Row(
        "volume with two sources",
        f"{SPEC}/volumes/0/emptyDisk",
        {"capacity": "1Gi"},
        "spec.volumes[0]",
        "has 2 sources",
    ),
    Row("disk and cdrom", f"{DISK}/cdrom", {}, "disks[0]", "more than one of"),
    Row("a lun", f"{DISK}/lun", {}, "disks[0].lun", "not built"),
    Row("bootOrder 0", f"{DISK}/bootOrder", 0, "disks[0].bootOrder", "from 1 to 1024"),
    Row("bootOrder twice", f"{NIC}/bootOrder", 1, "interfaces[0].bootOrder", "already used by disks[0]"),
    Row("bus ide", f"{DISK}/disk/bus", "ide", "disks[0].disk.bus", "allowed: virtio, sata"),
    Row("cdrom on virtio", DISK, {"name": "root", "cdrom": {"bus": "virtio"}}, "disks[0].cdrom.bus", "allowed: sata"),
    Row(
        "read-only sata disk",
        f"{DISK}/disk",
        {"bus": "sata", "readonly": True},
        "disks[0].disk.readonly",
        "use bus virtio",
    ),
    Row(
        "a switch whose false asks for something",
        f"{DOMAIN}/devices/logSerialConsole",
        False,
        "logSerialConsole",
        "not built",
    ),
    Row("serial of 300 characters", f"{DISK}/serial", "a" * 300, "disks[0].serial", "at most 256"),
    Row("serial with a space", f"{DISK}/serial", "a b", "disks[0].serial", "letters, digits"),
    Row("cache nobody knows", f"{DISK}/cache", "writeeverything", "disks[0].cache", "allowed: none, writethrough"),
    Row("block size", f"{DISK}/blockSize", {"custom": {"logical": 513}}, "disks[0].blockSize", "not built"),
    Row(
        "a block larger than itself",
        f"{DISK}/blockSize",
        {"custom": {"logical": 2**40, "physical": 512}},
        "disks[0].blockSize",
        "not built",
    ),
    Row("pciAddress", f"{DISK}/disk/pciAddress", "0000:81:01.10", "disks[0].disk.pciAddress", "not built"),
    Row("pciAddress in words", f"{DISK}/disk/pciAddress", "the first", "disks[0].disk.pciAddress", "not built"),
    Row(
        "300 disks",
        f"{DOMAIN}/devices/disks",
        [{"name": f"d{item}"} for item in range(300)],
        "devices.disks",
        "at most 256",
    ),
    Row("disks is an object", f"{DOMAIN}/devices/disks", {}, "devices.disks", "must be a list"),
    Row("a disk is text", f"{DOMAIN}/devices/disks", ["root"], "devices.disks[0]", "must be an object"),
    Row("image path climbs", f"{IMAGE}/path", "disk/../../host", "containerDisk.path", "absolute path"),
    Row("image path with dots", f"{IMAGE}/path", "/disk/../../host", "containerDisk.path", "without '.' or '..'"),
    Row("no image", f"{IMAGE}/image", "", "containerDisk.image", "is required"),
    Row("image and tag with a space", f"{IMAGE}/image", "a:b c", "containerDisk.image", "name of a container image"),
    Row("only a tag", f"{IMAGE}/image", ":latest", "containerDisk.image", "name of a container image"),
    Row("image with spaces", f"{IMAGE}/image", "a b", "containerDisk.image", "name of a container image"),
    Row("image of 10 KiB", f"{IMAGE}/image", "a" * 10240, "containerDisk.image", "at most 1024"),
    Row("image is a number", f"{IMAGE}/image", 7, "containerDisk.image", "must be a string"),
    Row("pull policy", f"{IMAGE}/imagePullPolicy", "Maybe", "containerDisk.imagePullPolicy", "allowed: Always"),
    Row(
        "a hotplugged data volume",
        f"{SPEC}/volumes/0",
        {"name": "root", "dataVolume": {"name": "x", "hotpluggable": True}},
        "volumes[0].dataVolume.hotpluggable",
        "not built",
    ),
    Row(
        "a host disk",
        f"{SPEC}/volumes/0",
        {"name": "root", "hostDisk": {"path": "/etc/../x"}},
        "volumes[0].hostDisk",
        "; use one of cloudInitNoCloud, containerDisk, dataVolume, emptyDisk, persistentVolumeClaim instead",
    ),
    Row(
        "a host disk of a size",
        f"{SPEC}/volumes/0",
        {"name": "root", "hostDisk": {"path": "/a", "type": "Disk", "capacity": "1Gi"}},
        "volumes[0].hostDisk",
        "not built",
    ),
    Row("a map that climbs", f"{SPEC}/volumes/0", {**ROOT, "configMap": {"name": ".."}}, ".configMap", "not built"),
    Row("a secret without a name", f"{SPEC}/volumes/0", {**ROOT, "secret": {"secretName": ""}}, ".secret", "not built"),
    Row(
        "two accounts",
        f"{SPEC}/volumes",
        [{"name": item, "serviceAccount": {"serviceAccountName": item}} for item in ("root", "scratch")],
        "volumes[1].serviceAccount",
        "not built",
    ),
    Row(
        "a source nobody knows",
        f"{SPEC}/volumes/0",
        {"name": "root", "contanerDisk": {}},
        "volumes[0].contanerDisk",
        "did you mean containerDisk",
    ),
    Row("user data of 2049 bytes", f"{SEED}/userData", "x" * 2049, "cloudInitNoCloud.userData", "set secretRef"),
    Row(
        "user data of 2049 bytes in base64",
        SEED,
        {"userDataBase64": "eHh4" * 683 + "eA=="},
        "cloudInitNoCloud.userDataBase64",
        "2050 bytes",
    ),
    Row(
        "binary user data", SEED, {"userDataBase64": "H4sIAAAA/w=="}, "cloudInitNoCloud.userDataBase64", "set secretRef"
    ),
    Row("not base64", SEED, {"userDataBase64": "%%%"}, "cloudInitNoCloud.userDataBase64", "not base64"),
    Row(
        "three user datas",
        SEED,
        {"userData": "a", "userDataBase64": "YQ==", "secretRef": {"name": "a"}},
        "cloudInitNoCloud",
        "keep exactly one",
    ),
    Row("no data", SEED, {}, "cloudInitNoCloud", "set one of userData"),
    Row(
        "inline data in 25 seeds",
        f"{SPEC}/volumes",
        [{"name": f"seed-{item}", "cloudInitNoCloud": {"userData": "x" * 2000}} for item in range(25)],
        "spec.volumes",
        "at most 49152 are allowed; put data into Secrets",
    ),
    Row("Secret without name", SEED, {"secretRef": {}}, "cloudInitNoCloud.secretRef.name", "is required"),
    Row("Secret that climbs", SEED, {"secretRef": {"name": ".."}}, "cloudInitNoCloud.secretRef.name", "DNS subdomain"),
    Row(
        "capacity without bounds",
        f"{SPEC}/volumes/1/emptyDisk/capacity",
        "100Ti",
        "emptyDisk.capacity",
        "from 1Mi to 16Ti",
    ),
    Row("no capacity", f"{SPEC}/volumes/1/emptyDisk/capacity", "0", "emptyDisk.capacity", "from 1Mi to 16Ti"),
    Row("volume name climbs", f"{SPEC}/volumes/0/name", "../x", "volumes[0].name", "DNS label"),
    Row("volume without name", f"{SPEC}/volumes/0/name", ..., "volumes[0].name", "is required"),
    Row("access credentials", f"{SPEC}/accessCredentials", [{}], "spec.accessCredentials", "not built"),
    Row(
        "access credentials by two ways",
        f"{SPEC}/accessCredentials",
        [{"sshPublicKey": {"source": {}, "propagationMethod": {"noCloud": {}, "qemuGuestAgent": {"users": ["a"]}}}}],
        "spec.accessCredentials",
        "not built",
    ),
    Row("a lun on an image", DISK, {**ROOT, "lun": {"bus": "scsi"}}, "disks[0].lun", "not built"),
]

NETWORK = [
    Row("interface without network", f"{NIC}/name", "other", "interfaces[0].name", "no network is called"),
    Row("network without interface", f"{SPEC}/networks/0/name", "other", "networks[0].name", "no interface is called"),
    Row(
        "two networks with one name",
        f"{SPEC}/networks",
        [{"name": "default", "pod": {}}] * 2,
        "networks[1].name",
        "must be unique",
    ),
    Row(
        "two pod networks",
        f"{SPEC}/networks",
        [{"name": "default", "pod": {}}, {"name": "b", "pod": {}}],
        "networks[1].pod",
        "at most one",
    ),
    Row("interface name with a command", f"{NIC}/name", "eth0; ip link", "interfaces[0].name", "letters, digits"),
    Row(
        "two interfaces of one network",
        f"{DOMAIN}/devices/interfaces",
        [{"name": "default", "masquerade": {}}] * 2,
        "interfaces[1].name",
        "must be unique",
    ),
    Row("a secondary network", f"{SPEC}/networks/0", {"name": "default", "multus": SECOND}, ".multus", "not built"),
    Row("no second network", f"{SPEC}/networks/0", {"name": "default", "multus": {}}, ".multus", "not built"),
    Row("no binding", f"{NIC}/masquerade", ..., "interfaces[0]", "set masquerade"),
    Row("bridge", NIC, {"name": "default", "bridge": {}}, "interfaces[0].bridge", "; use masquerade instead"),
    Row("bridge and masquerade", f"{NIC}/bridge", {}, "interfaces[0].bridge", "; remove it"),
    Row("masquerade with settings", f"{NIC}/masquerade", {"a": 1}, "interfaces[0].masquerade", "takes no settings"),
    Row("not a MAC", f"{NIC}/macAddress", "gg:00:00:00:00:01", "interfaces[0].macAddress", "must be a MAC address"),
    Row("broadcast", f"{NIC}/macAddress", "ff:ff:ff:ff:ff:ff", "interfaces[0].macAddress", "unicast"),
    Row("multicast", f"{NIC}/macAddress", "01:00:5e:00:00:01", "interfaces[0].macAddress", "unicast"),
    Row("the bridge's MAC", f"{NIC}/macAddress", "02-00-00-00-00-00", "interfaces[0].macAddress", "reserved"),
    Row("port 0", f"{NIC}/ports", [{"port": 0}], "interfaces[0].ports[0].port", "from 1 to 65535"),
    Row("port 65536", f"{NIC}/ports", [{"port": 65536}], "interfaces[0].ports[0].port", "from 1 to 65535"),
    Row(
        "SCTP",
        f"{NIC}/ports",
        [{"port": 1, "protocol": "SCTP"}],
        "interfaces[0].ports[0].protocol",
        "allowed: TCP, UDP",
    ),
    Row(
        "port name twice",
        f"{NIC}/ports",
        [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}],
        "interfaces[0].ports[1].name",
        "unique",
    ),
    Row(
        "port twice",
        f"{NIC}/ports",
        [{"port": 1}, {"port": 1, "protocol": "TCP"}],
        "interfaces[0].ports[1]",
        "already listed",
    ),
    Row("model with options", f"{NIC}/model", "e1000,mac=x", "interfaces[0].model", "allowed: virtio, e1000"),
    Row(
        "multus",
        f"{SPEC}/networks/0",
        {"name": "default", "multus": {"networkName": "../x"}},
        "networks[0].multus",
        "not built in this version; use pod instead",
    ),
    Row("no network source", f"{SPEC}/networks/0", {"name": "default"}, "networks[0]", "set pod"),
    Row("DHCP options", f"{NIC}/dhcpOptions", {"privateOptions": []}, "interfaces[0].dhcpOptions", "not built"),
    Row(
        "a DHCP option of nobody's",
        f"{NIC}/dhcpOptions",
        {"privateOptions": [{"option": 10, "value": "a"}] * 2, "ntpServers": ["not-an-ip"]},
        "interfaces[0].dhcpOptions",
        "not built",
    ),
    Row(
        "1000 interfaces",
        f"{DOMAIN}/devices/interfaces",
        [{"name": f"n{number}", "masquerade": {}} for number in range(1000)],
        "devices.interfaces",
        "at most 32",
    ),
    Row(
        "a network of one address",
        f"{SPEC}/networks/0/pod/vmNetworkCIDR",
        "10.0.2.0/31",
        "pod.vmNetworkCIDR",
        "from /8 to /30",
    ),
    Row("not a network", f"{SPEC}/networks/0/pod/vmNetworkCIDR", "10.0.2", "pod.vmNetworkCIDR", "10.0.2.0/24"),
    Row("a GPU", f"{DOMAIN}/devices/gpus", [{"name": "a"}], "devices.gpus", "not built"),
    Row("a misspelt GPU", f"{DOMAIN}/devices/gpuz", [], "devices.gpuz", "did you mean gpus"),
]

ROWS = [*SHAPE, *COMPUTE, *STORAGE, *NETWORK]
