# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small API server: objects, versions, managed fields, dry run, watches, and a VM that starts and stops.

It serves real HTTP on loopback. Faults of schedulers and registries are set on `World`.
"""

from __future__ import annotations

import copy
import itertools
import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from . import fake_fields, fake_guests, fake_migrations, fake_pools

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name
KINDS = {
    "virtualmachines": ("kubevirt.io/v1", "VirtualMachine"),
    "virtualmachineinstances": ("kubevirt.io/v1", "VirtualMachineInstance"),
    "virtualmachineinstancereplicasets": ("kubevirt.io/v1", "VirtualMachineInstanceReplicaSet"),
    "virtualmachinepools": ("pool.kubevirt.io/v1beta1", "VirtualMachinePool"),
    "virtualmachineinstancemigrations": ("kubevirt.io/v1", "VirtualMachineInstanceMigration"),
    "nodes": ("v1", "Node"),
    "services": ("v1", "Service"),
    "pods": ("v1", "Pod"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "datavolumes": ("cdi.kubevirt.io/v1beta1", "DataVolume"),
    "events": ("v1", "Event"),
}
FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
)
"""A refusal without a Status, for World.mischief."""


class Refused(Exception):
    """A response that is a Status."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, "details": details,
        }  # fmt: skip


class World:
    """The cluster: objects, owners of fields, and the behaviour of machines."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: dict[Key, Object] = {}
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.watchers: list[tuple[str, str, str | None, queue.Queue[Object | None]]] = []
        self.history: list[tuple[int, str, Object]] = []
        """Versions, plurals and events."""
        self.versions = itertools.count(2)  # version 1 means none in etcd
        self.version = 1
        self.start_paused = False
        """Whether the next instance of a VM starts paused."""
        self.has_agents = False
        """Whether guests have an agent."""
        self.not_built: set[str] = set()
        """Guest operations that the control plane does not support (501)."""
        self.unknown: set[str] = set()
        """Guest operations that the control plane does not know (404)."""
        self.unschedulable: str | None = None
        """The scheduler's message, if no node fits."""
        self.migrations = fake_migrations.SUCCEED
        """The fate of migrations: a constant of fake_migrations."""
        self.kubevirt_installed = True
        self.is_api_server = True
        self.refuse_next: list[Refused] = []
        self.mischief: Callable[[str, str], bytes | None] | None = None
        """Returns the response of a proxy before the API server: bytes; None: the request passes."""
        self.pools_change = True
        """Whether pools update their machines with the template, and delete them with themselves."""
        self.namespaces = {"default"}
        self.keyed_lists = False
        """Whether the CRD says that lists are maps by name."""

    # -- reading and storing

    def put(self, plural: str, obj: Object) -> Object:
        """Store an object as it is, with a new version; notify watchers."""
        metadata = obj["metadata"]
        key = (plural, metadata.get("namespace", ""), metadata["name"])
        with self.lock:
            kind = "MODIFIED" if key in self.objects else "ADDED"
            self.version = version = next(self.versions)
            metadata["resourceVersion"] = str(version)
            metadata.setdefault("uid", f"uid-{version}")
            obj.setdefault("apiVersion", KINDS[plural][0])
            obj.setdefault("kind", KINDS[plural][1])
            self.objects[key] = obj
            self._tell(kind, plural, obj)
        return obj

    def drop(self, plural: str, namespace: str, name: str) -> None:
        """Remove an object; notify watchers."""
        with self.lock:
            gone = self.objects.pop((plural, namespace, name), None)
            if gone is not None:
                self.version = next(self.versions)
                gone["metadata"]["resourceVersion"] = str(self.version)
                self._tell("DELETED", plural, gone)

    def vm(self, name: str, namespace: str = "default") -> Object:
        """Return the stored VM."""
        return self.objects["virtualmachines", namespace, name]

    def sent(self, *methods: str) -> list[str]:
        """Return the requests with these methods, as METHOD path."""
        return [f"{method} {path}" for method, path in self.requests if method in methods]

    def _tell(self, kind: str, plural: str, obj: Object) -> None:
        event = {"type": kind, "object": copy.deepcopy(obj)}
        self.history.append((self.version, plural, event))
        for of, namespace, name, events in self.watchers:
            if of == plural and _is_about(event, namespace, name):
                events.put(event)

    # -- writes of users

    def apply(self, plural: str, namespace: str, name: str, body: Object, *, manager: str, dry_run: bool) -> Object:
        """Server-side apply: set declared fields, remove fields that only this manager declared before."""
        with self.lock:
            old = self.objects.get((plural, namespace, name))
            wanted = body["metadata"].pop("resourceVersion", None)
            if old is not None and wanted not in (None, old["metadata"]["resourceVersion"]):
                raise Refused(409, "Conflict", "the object has been modified", name=name)
            new = copy.deepcopy(old) if old is not None else {"metadata": {"name": name, "namespace": namespace}}
            managed = new["metadata"].pop("managedFields", [])
            before = next((item["fieldsV1"] for item in managed if _is_applier(item, manager)), {})
            fields = fake_fields.fields_of(body, keyed=self.keyed_lists)
            others = [item for item in managed if not _is_applier(item, manager)]
            fake_fields.take_away(new, before, fields, [item["fieldsV1"] for item in others])
            fake_fields.put_in(new, body, keyed=self.keyed_lists)
            if old is not None:
                others = fake_fields.after_apply(others, _content(old), new, keyed=self.keyed_lists)
            entries = [*others, fake_fields.entry(manager, "Apply", fields)]
            return self._store(plural, old, new, entries, dry_run=dry_run)

    def patch(
        self, plural: str, namespace: str, name: str, body: Object, *, dry_run: bool, manager: str = "somebody"
    ) -> Object:
        """JSON merge patch; with a resourceVersion, for that version only."""
        with self.lock:
            old = self._existing(plural, namespace, name)
            new = copy.deepcopy(old)
            managed = new["metadata"].pop("managedFields", [])
            fake_fields.merge(new, body)
            _expect_version(old, new)
            entries = fake_fields.after_update(managed, _content(old), new, manager, keyed=self.keyed_lists)
            return self._store(plural, old, new, entries, dry_run=dry_run)

    def replace(
        self, plural: str, namespace: str, name: str, body: Object, *, dry_run: bool, manager: str = "somebody"
    ) -> Object:
        """PUT."""
        with self.lock:
            old = self._existing(plural, namespace, name)
            new = {**body, "status": old.get("status", {})}
            _expect_version(old, new)
            for key in ("generation", "deletionTimestamp"):
                if key in old["metadata"]:
                    new["metadata"][key] = old["metadata"][key]
            fake_guests.admit(plural, old, new) or _admit(new)
            managed = old["metadata"].get("managedFields", [])
            entries = fake_fields.after_update(managed, _content(old), new, manager, keyed=self.keyed_lists)
            return self._store(plural, old, new, entries, dry_run=dry_run)

    def create(self, plural: str, namespace: str, body: Object, *, dry_run: bool) -> Object:
        """POST."""
        with self.lock:
            metadata = body["metadata"]
            if "generateName" in metadata:
                metadata["name"] = f"{metadata['generateName']}{next(self.versions)}"
            metadata["namespace"] = namespace
            if plural == fake_migrations.MIGRATIONS:
                fake_migrations.admit(self, body)
            return self._store(plural, None, body, [], dry_run=dry_run)

    def _store(self, plural: str, old: Object | None, new: Object, managed: list[Object], *, dry_run: bool) -> Object:
        fake_guests.admit(plural, old, new) or _admit(new)
        if old is not None:
            same = {k: v for k, v in old["metadata"].items() if k != "managedFields"} == new["metadata"]
            if same and old.get("spec") == new.get("spec") and old["metadata"].get("managedFields") == managed:
                return old
        new["metadata"]["generation"] = (old or {"metadata": {}})["metadata"].get("generation", 0) + (
            old is None or old.get("spec") != new.get("spec")
        )
        if managed:
            new["metadata"]["managedFields"] = managed
        if dry_run:
            new["metadata"].setdefault("uid", "dry-run")
            return new
        self.put(plural, new)
        if plural == "virtualmachines":
            self.reconcile(new["metadata"]["namespace"], new["metadata"]["name"])
        elif plural == fake_migrations.MIGRATIONS:
            fake_migrations.begin(self, new)
        elif old is None or plural in fake_guests.KEEPERS:
            fake_guests.begin(self, plural, new)
        return self.objects.get((plural, new["metadata"]["namespace"], new["metadata"]["name"]), new)

    def delete(self, plural: str, namespace: str, name: str, options: Object) -> Object:
        """DELETE, with preconditions; the instance goes with its VM unless orphaned."""
        with self.lock:
            old = self._existing(plural, namespace, name)
            uid = (options.get("preconditions") or {}).get("uid")
            if uid not in (None, old["metadata"]["uid"]):
                raise Refused(409, "Conflict", f"the UID in the precondition ({uid}) does not match", name=name)
            if "dryRun" not in options:
                if plural == "virtualmachines" and options.get("propagationPolicy") != "Orphan":
                    self.drop("virtualmachineinstances", namespace, name)
                self.drop(plural, namespace, name)
                if plural == fake_pools.POOLS:
                    fake_pools.collect(self, old)
            return old

    def _existing(self, plural: str, namespace: str, name: str) -> Object:
        result = self.objects.get((plural, namespace, name))
        if plural == "namespaces" and name in self.namespaces:
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        if result is None:
            raise Refused(404, "NotFound", f'{plural}.kubevirt.io "{name}" not found', name=name, kind=plural)
        return result

    # -- the control plane

    def operate(self, namespace: str, name: str, verb: str, body: Object) -> None:
        """Start, stop, restart."""
        with self.lock:
            vm = self._existing("virtualmachines", namespace, name)
            strategy, running = _strategy(vm), self.objects.get(("virtualmachineinstances", namespace, name))
            self.start_paused = bool(body.get("paused"))
            if verb == "start" and (running or strategy in ("Always", "Once")):
                raise Refused(409, "Conflict", f"{name}: VM is already running", name=name)
            if verb == "stop" and not running and strategy != "Always":
                raise Refused(409, "Conflict", f"{name}: VM is not running", name=name)
            if verb == "restart" and not running:
                raise Refused(409, "Conflict", f"{name}: VM is not running", name=name)
            if body.get("dryRun"):
                return
            new = copy.deepcopy(vm)
            if verb in ("stop", "restart"):
                self.drop("virtualmachineinstances", namespace, name)
            if strategy in ("Always", "Halted"):
                new["spec"].pop("running", None)
                new["spec"]["runStrategy"] = "Halted" if verb == "stop" else "Always"
            self.put("virtualmachines", new)
            self.reconcile(namespace, name, start=verb != "stop")

    def reconcile(self, namespace: str, name: str, *, start: bool = False) -> None:
        """Make the instance match the run strategy, and the status match the instance."""
        vm = self.objects.get(("virtualmachines", namespace, name))
        if vm is None:
            return
        instance = self.objects.get(("virtualmachineinstances", namespace, name))
        begins = "status" not in vm and _strategy(vm) in ("Once", "RerunOnFailure")
        wanted = start or begins or _strategy(vm) == "Always"
        if _strategy(vm) == "Halted" and instance is not None:
            self.drop("virtualmachineinstances", namespace, name)
            instance = None
        if wanted and instance is None:
            instance = self._start(vm, namespace, name)
        up = instance is not None and instance["status"]["phase"] == "Running"
        vm = copy.deepcopy(vm)
        ready = {"type": "Ready", "status": str(up), "reason": "" if instance else "VMINotExists"}
        trouble = [item for item in (instance or {}).get("status", {}).get("conditions", ()) if item["type"] != "Ready"]
        vm["status"] = {
            "created": instance is not None, "ready": up, "conditions": [ready, *trouble],
            "printableStatus": "Running" if up else "ErrorUnschedulable" if instance else "Stopped",
            "desiredGeneration": vm["metadata"]["generation"],
        }  # fmt: skip
        self.put("virtualmachines", vm)

    def _start(self, vm: Object, namespace: str, name: str) -> Object:
        status: Object = {"phase": "Running", "nodeName": "node-1", "conditions": [{"type": "Ready", "status": "True"}]}
        if self.unschedulable:
            condition = {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": self.unschedulable
            }  # fmt: skip
            status = {"phase": "Scheduling", "conditions": [condition]}
        owner = {"kind": "VirtualMachine", "name": name, "uid": vm["metadata"]["uid"]}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        spec = copy.deepcopy(vm["spec"]["template"].get("spec") or {})
        spec.update({"startStrategy": "Paused"} if self.start_paused else {})
        made: Object = {"metadata": metadata, "spec": spec, "status": status}
        self.start_paused = False
        return self.put("virtualmachineinstances", fake_guests.begun(made))


def _is_applier(entry: Object, manager: str) -> bool:
    return (entry["manager"], entry["operation"]) == (manager, "Apply")


def _content(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _expect_version(old: Object, new: Object) -> None:
    if new["metadata"].get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
        raise Refused(409, "Conflict", "the object has been modified", name=old["metadata"]["name"])


def _strategy(vm: Object) -> str:
    spec = vm.get("spec", {})
    return spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted")


def _admit(vm: Object) -> None:
    """Set defaults and validate as the webhooks do."""
    spec = vm.setdefault("spec", {})
    causes = []
    if "template" not in spec:
        causes.append({"field": "spec.template", "message": "Required value"})
    if spec.get("running") is not None and spec.get("runStrategy") is not None:
        causes.append({"field": "spec.running", "message": "running and runStrategy exclude one another"})
    known_fields = {"template", "running", "runStrategy", "instancetype", "preference", "dataVolumeTemplates"}
    causes += [{"field": f"spec.{key}", "message": "unknown field"} for key in spec if key not in known_fields]
    if causes:
        raise Refused(422, "Invalid", "VirtualMachine is invalid: " + "x" * 5000, causes=causes)
    domain = spec["template"].setdefault("spec", {}).setdefault("domain", {})
    domain.setdefault("firmware", {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"})
    domain.setdefault("machine", {"type": "q35"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_args: Any) -> None:
        """Log nothing."""

    def _answer(self, code: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        if payload:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _not_found(self) -> None:
        self.send_response(404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "18")
        self.end_headers()
        self.wfile.write(b"404 page not found")

    def _serve(self) -> None:
        world = self.server.world
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else {}
        with world.lock:
            world.requests.append((self.command, self.path))
            world.bodies.append(body)
        foreign = world.mischief(self.command, self.path) if world.mischief else None
        if foreign is not None:
            self.close_connection = True
            self.wfile.write(foreign)
            return
        try:
            if world.refuse_next:
                raise world.refuse_next.pop(0)
            self._route(world, parts, query, body)
        except Refused as refused:
            self._answer(refused.code, refused.status)

    def _route(self, world: World, parts: list[str], query: dict[str, str], body: Object) -> None:
        if parts == ["apis"] and not world.is_api_server:
            self._not_found()
            return
        if parts == ["apis"]:
            groups = [{"name": "apps"}, *([{"name": "kubevirt.io"}] if world.kubevirt_installed else [])]
            self._answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            return
        rest = parts[3:] if parts[0] == "apis" else parts[2:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name = rest[0], rest[1] if len(rest) > 1 else None
        if parts[0] == "apis" and not world.kubevirt_installed:
            self._not_found()
        elif len(rest) > 2 and plural == "virtualmachineinstances":
            self._answer(200, fake_guests.operate(world, self.command, (namespace, rest[1]), rest[2], body))
        elif len(rest) > 2:
            world.operate(namespace, rest[1], rest[2], body)
            self._answer(202, None)
        elif self.command == "GET" and "watch" in query:
            self._watch(world, plural, namespace, query)
        elif self.command == "GET" and name is None:
            with world.lock:
                metadata = {"resourceVersion": str(world.version)}
                listed = {"items": copy.deepcopy(_chosen(world, plural, namespace, query)), "metadata": metadata}
            self._answer(200, listed)
        else:
            self._object(world, (plural, namespace, name or ""), query, body)

    def _object(self, world: World, key: Key, query: dict[str, str], body: Object) -> None:
        dry_run = query.get("dryRun") == "All"
        manager = query.get("fieldManager", "unknown")
        if self.command == "GET":
            self._answer(200, world._existing(*key))
        elif self.command == "POST":
            self._answer(201, world.create(*key[:2], body, dry_run=dry_run))
        elif self.command == "PUT":
            self._answer(200, world.replace(*key, body, dry_run=dry_run, manager=manager))
        elif self.command == "DELETE":
            self._answer(200, world.delete(*key, body))
        elif "apply" in (self.headers.get("Content-Type") or ""):
            self._answer(200, world.apply(*key, body, manager=manager, dry_run=dry_run))
        else:
            self._answer(200, world.patch(*key, body, dry_run=dry_run, manager=manager))

    def _watch(self, world: World, plural: str, namespace: str, query: dict[str, str]) -> None:
        events: queue.Queue[Object | None] = queue.Queue()
        name = query.get("fieldSelector", "").partition("metadata.name=")[2] or None
        with world.lock:
            since = int(query["resourceVersion"])
            for version, of, event in world.history:
                if version > since and of == plural and _is_about(event, namespace, name):
                    events.put(event)
            world.watchers.append((plural, namespace, name, events))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while (event := events.get(timeout=float(query.get("timeoutSeconds", "5")))) is not None:
                self.wfile.write(json.dumps(event).encode() + b"\n")
        except (queue.Empty, OSError):
            return

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve


def _is_about(event: Object, namespace: str, name: str | None) -> bool:
    metadata = event["object"]["metadata"]
    return namespace == metadata.get("namespace", "") and name in (None, metadata["name"])


def _chosen(world: World, plural: str, namespace: str, query: dict[str, str]) -> list[Object]:
    fields = dict(item.split("=", 1) for item in query.get("fieldSelector", "").split(",") if item)
    labels = dict(item.split("=", 1) for item in query.get("labelSelector", "").split(",") if item)
    results = []
    for (kind, where, name), obj in sorted(world.objects.items()):
        about = (obj.get("involvedObject") or {}).get("name")
        if kind != plural or namespace not in ("", where):
            continue
        if fields.get("metadata.name", name) != name or fields.get("involvedObject.name", about) != about:
            continue
        if labels.items() <= (obj["metadata"].get("labels") or {}).items():
            results.append(obj)
    return results


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    world: World

    def handle_error(self, *_request: Any) -> None:
        """Ignore clients that have gone away."""


@contextmanager
def serving(world: World) -> Iterator[str]:
    """Serve a world; yield its address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.world = world
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        with world.lock:
            for *_which, events in world.watchers:
                events.put(None)
        server.shutdown()
        server.server_close()
        thread.join()
