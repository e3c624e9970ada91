# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running lab does what any cluster does: DNS, Services, storage, images, access control, a way in."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from images.oci import Config, LayerWriter, write_archive
from lab import Lab
from lab.cluster.inventory import render_inventory
from lab.errors import ApiError
from lab.images import imports
from lab.machines import cgroup, loops
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.lab.real import PODS, a_pod, delete_pod, eventually, run_pod

pytestmark = pytest.mark.lab

RESOLVE = """
import socket
name = b"".join(bytes([len(part)]) + part for part in b"kubernetes.default.svc.cluster.local".split(b"."))
query = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00" + name + b"\\x00\\x00\\x01\\x00\\x01"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(5)
    sock.sendto(query, ("10.96.0.10", 53))
    print(socket.inet_ntoa(sock.recv(512)[-4:]))
"""
CONNECT = """
import socket
with socket.create_connection(("10.96.0.1", 443), 5):
    print("connected")
"""
STRICT = {
    "runAsUser": 107,
    "runAsNonRoot": True,
    "fsGroup": 107,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONFINED = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}


def pod_pid(lab: Lab, node: str, uid: str) -> int:
    """The host's pid of a process in the Pod."""
    for pid in cgroup.processes(lab.node(node).group):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            if uid in Path(f"/proc/{pid}/cgroup").read_text():
                return pid
    raise AssertionError(f"Pod {uid} has no process on {node}")


def in_pod_network(lab: Lab, node: str, uid: str, program: str) -> str:
    """Return the output of the program, empty if it fails."""
    command = ["nsenter", f"--net=/proc/{pod_pid(lab, node, uid)}/ns/net", sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def dns_is_up(lab: Lab) -> bool:
    found = lab.api().get("/apis/apps/v1/namespaces/kube-system/deployments/coredns") or {}
    return bool(found.get("status", {}).get("readyReplicas"))


def test_a_second_up_restarts_nothing(two_nodes: Lab) -> None:
    before = {machine.name: machine.programs() for machine in (two_nodes.control_plane, *two_nodes.nodes())}
    two_nodes.up()
    assert {machine.name: machine.programs() for machine in (two_nodes.control_plane, *two_nodes.nodes())} == before


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_a_pod_on_any_node_reaches_services_and_dns(two_nodes: Lab, node: str) -> None:
    """The DNS Pod runs on one of the two nodes, so one path crosses nodes."""
    eventually(lambda: dns_is_up(two_nodes), 30, "CoreDNS is ready")
    uid = run_pod(two_nodes, a_pod(f"net-{node}", node=node))["metadata"]["uid"]
    eventually(lambda: in_pod_network(two_nodes, node, uid, CONNECT) == "connected", 10, "Service kubernetes")
    eventually(lambda: in_pod_network(two_nodes, node, uid, RESOLVE) == "10.96.0.1", 15, "cluster DNS")


def test_a_pod_reaches_the_host_with_its_nodes_address(two_nodes: Lab) -> None:
    plan = two_nodes.describe().addresses
    uid = run_pod(two_nodes, a_pod("outward", node="node-1"))["metadata"]["uid"]
    with socket.create_server((str(plan.host), 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket; socket.create_connection(('{plan.host}', {port}), 5).close()"
        in_pod_network(two_nodes, "node-1", uid, program)
        connection, (peer, _unused) = server.accept()
        connection.close()
    assert peer == str(plan.node(1))


def test_logs_and_kubectl_go_through_the_api_server(two_nodes: Lab) -> None:
    eventually(lambda: dns_is_up(two_nodes), 30, "CoreDNS is ready")
    kubectl = ensure_programs(two_nodes.cache, silent).kube("kubectl")
    command = [kubectl, "--kubeconfig", two_nodes.kubeconfig, "--namespace", "kube-system", "logs", "deploy/coredns"]
    assert "CoreDNS-" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_an_unprivileged_pod_has_file_block_and_shared_volumes(two_nodes: Lab) -> None:
    api = two_nodes.api()
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    for name, more in {
        "files": {"accessModes": ["ReadWriteOnce"]},
        "block": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"},
        "everywhere": {"accessModes": ["ReadWriteMany"], "storageClassName": "shared"},
    }.items():
        spec = {**more, "resources": {"requests": {"storage": "8Mi"}}}
        metadata = {"name": name}
        api.create(claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("files", "everywhere")]
    container = {**CONFINED, "volumeMounts": mounts, "volumeDevices": [{"name": "block", "devicePath": "/dev/block"}]}
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("files", "block", "everywhere")
    ]
    pod = run_pod(two_nodes, a_pod("writer", container=container, volumes=volumes, securityContext=STRICT))
    root = Path(f"/proc/{pod_pid_of_container(two_nodes, pod)}/root")
    assert (root / "dev/block").stat().st_uid == 107
    (root / "everywhere/word").write_text("hello")

    other = "node-1" if pod["spec"]["nodeName"] == "node-2" else "node-2"
    reader = {"volumeMounts": [{"name": "everywhere", "mountPath": "/everywhere"}]}
    pod = run_pod(two_nodes, a_pod("reader", node=other, container=reader, volumes=volumes[2:]))
    assert Path(f"/proc/{pod_pid_of_container(two_nodes, pod)}/root/everywhere/word").read_text() == "hello"

    for name in ("writer", "reader"):
        delete_pod(two_nodes, name)
    for name in ("files", "block", "everywhere"):
        api.delete(f"{claims}/{name}")
    eventually(lambda: not (api.get("/api/v1/persistentvolumes") or {})["items"], 20, "volumes are removed")
    assert not list(two_nodes.state.root.glob("nodes/*/volumes/*"))
    assert not [loop for loop in loops.attached() if loop.stands_on[1] in _inodes(two_nodes.state.root)]


def _inodes(root: Path) -> set[int]:
    return {path.stat().st_ino for path in root.glob("nodes/*/volumes/*/*")}


def pod_pid_of_container(lab: Lab, pod: dict[str, object]) -> int:
    (status,) = pod["status"]["containerStatuses"]  # type: ignore[index]
    container = status["containerID"].removeprefix("containerd://")
    return pod_pid(lab, pod["spec"]["nodeName"], container)  # type: ignore[index]


def test_an_imported_image_runs_on_every_node_by_tag_and_by_digest(
    two_nodes: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = ensure_programs(two_nodes.cache, silent).node("pause")
    with LayerWriter(tmp_path / "layer") as layer:
        layer.file("pause", pause, mode=0o755)
    image = write_archive(
        tmp_path / "image.tar", "localhost/lab-tests/pause:7", [layer.layer], Config(entrypoint=("/pause",))
    )
    assert two_nodes.import_image(image.path) == "localhost/lab-tests/pause:7"
    with monkeypatch.context() as again:
        again.setattr(imports, "import_into", lambda *_unused: pytest.fail("a second import does nothing"))
        two_nodes.import_image(image.path)
    assert all("localhost/lab-tests/pause:7" in names for names in two_nodes.image_references().values())
    run_pod(two_nodes, a_pod("by-tag", node="node-1", image=image.reference))
    run_pod(two_nodes, a_pod("by-digest", node="node-2", image=f"localhost/lab-tests/pause@{image.digest}"))


def test_pod_security_and_rbac_are_enforced(two_nodes: Lab) -> None:
    api = two_nodes.api()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.create("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "strict", "labels": labels}})
    eventually(
        lambda: api.get("/api/v1/namespaces/strict/serviceaccounts/default"), 10, "ServiceAccount strict/default"
    )
    with pytest.raises(ApiError, match="violates PodSecurity"):
        api.create("/api/v1/namespaces/strict/pods", a_pod("bare"))
    proxy = ensure_programs(two_nodes.cache, silent).kube("kubectl")
    asked = subprocess.run(
        [proxy, "--kubeconfig", two_nodes.kubeconfig, "auth", "can-i", "get", "secrets", "--as=somebody"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.stdout.strip() == "no"


def test_the_audit_log_names_user_and_object(two_nodes: Lab) -> None:
    run_pod(two_nodes, a_pod("audited"))
    events = [json.loads(line) for line in two_nodes.audit_log.read_text().splitlines()]
    (created,) = [
        event
        for event in events
        if event["verb"] == "create"
        and event["objectRef"].get("name") == "audited"
        and not event["objectRef"].get("subresource")
    ]
    assert created["level"] == "Metadata"
    assert created["user"]["username"] == "lab-admin"
    assert "requestObject" not in created


def test_a_command_runs_on_the_node_with_its_streams_and_exit_code(two_nodes: Lab) -> None:
    program = "read word; echo $word on $(hostname); cat /proc/self/cgroup | grep -c ':/$'; exit 3"
    done = subprocess.run(
        two_nodes.node("node-2").command(["sh", "-c", program]),
        input="hello\n",
        capture_output=True,
        text=True,
        check=False,
    )
    first, groups = done.stdout.splitlines()
    assert (done.returncode, first) == (3, "hello on node-2")
    assert int(groups) > 0, "the node's own cgroup is the root inside"


def test_device_files_are_private_to_the_node(two_nodes: Lab) -> None:
    host = Path("/dev/net/tun").stat().st_mode
    listed = two_nodes.node("node-1").run(["stat", "--format=%a", "/dev/net/tun"]).stdout.strip()
    assert listed == "666"
    assert Path("/dev/net/tun").stat().st_mode == host


def test_ansible_runs_tasks_on_the_nodes(two_nodes: Lab, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(render_inventory(two_nodes))
    (tmp_path / "word").write_text("hello")
    plugins = Path(__file__).resolve().parents[2] / "lab/ansible/connection_plugins"
    command = [sys.executable, "-m", "ansible", "adhoc", "kubevirt_nodes", "--inventory", str(inventory)]
    done = subprocess.run(
        [*command, "--module-name", "copy", "--args", f"src={tmp_path}/word dest=/run/word"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "ANSIBLE_CONNECTION_PLUGINS": str(plugins),
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for node in two_nodes.nodes():
        assert node.run(["cat", "/run/word"]).stdout == "hello"
    assert not Path("/run/word").exists()


def test_pods_are_in_the_default_namespace(two_nodes: Lab) -> None:
    assert (two_nodes.api().get(PODS) or {})["kind"] == "PodList"
