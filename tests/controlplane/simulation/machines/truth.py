# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a status must say at rest, derived from the objects themselves. Whether the objects are as wanted is in rest."""

from __future__ import annotations

from collections import Counter

from kubevirt_api.names import NODE_NAME, TEMPLATE_HASH, TEMPLATE_METADATA_HASH, VM_GENERATION

from tests.controlplane.simulation.ledger import controlling_uid
from tests.support.store import OVER, Json

TIER = "tier"
"""A label of templates that users change."""
OWN = ("Ready", "Failure", "RestartRequired")
"""Conditions of the VM; all others are those of its instance."""


def untrue_of_vm(vm: Json, vmi: Json | None) -> list[str]:
    """Return what the status of a VM says wrongly. vmi: of its name, with any owner."""
    status, uid = vm.get("status", {}), vm["metadata"]["uid"]
    own = vmi if vmi is not None and controlling_uid(vmi) == uid else None
    phase = "" if own is None else _phase(own)
    ready = own is not None and condition(own, "Ready").get("status") == "True"
    made_of, observed = made_from(own, vm), status.get("observedGeneration", 0)
    reported = {
        "created": (bool(status.get("created")), own is not None),
        "ready": (bool(status.get("ready")), ready),
        "desiredGeneration": (status.get("desiredGeneration"), vm["metadata"]["generation"]),
        "observedGeneration": (made_of <= observed <= max(made_of, vm["metadata"]["generation"]), True),
        "RestartRequired": (bool(condition(vm, "RestartRequired")), _is_outdated(vm, own)),
        "mirrored conditions": (_mirror(vm), {} if own is None else _mirror(own)),
        "startFailure": (phase == "Running" and "startFailure" in status, False),
    }
    problems = [
        f"says {name} {is_said!r}, it is {is_so!r}" for name, (is_said, is_so) in reported.items() if is_said != is_so
    ]
    if status.get("printableStatus") == "CrashLoopBackOff" and "startFailure" not in status:
        problems.append("says CrashLoopBackOff, and counts no failure")
    return problems


def untrue_of_vmi(vmi: Json) -> list[str]:
    """Return what the status of a VMI says wrongly."""
    status, phase = vmi.get("status", {}), _phase(vmi)
    entered = Counter(timestamp["phase"] for timestamp in status.get("phaseTransitionTimestamps", ()))
    problems = []
    if phase and (entered[phase] != 1 or entered.total() != len(entered)):
        problems.append(f"is {phase} and entered {dict(entered)}")
    if phase in OVER and condition(vmi, "Ready").get("status") == "True":
        problems.append(f"is {phase} and ready")
    if phase == "Running":
        problems += _untrue_of_a_run(vmi)
    return problems


def says_why(vmi: Json) -> bool:
    """Whether a failed VMI reports what went wrong."""
    return condition(vmi, "Synchronized").get("status") == "False"


def _untrue_of_a_run(vmi: Json) -> list[str]:
    status, problems = vmi["status"], []
    if condition(vmi, "Synchronized"):
        problems.append(f"runs, and says {condition(vmi, 'Synchronized')}")
    if list((status.get("activePods") or {}).values()) != [status.get("nodeName")]:
        problems.append(f"runs on {status.get('nodeName')}, and was given to {status.get('activePods')}")
    label = vmi["metadata"].get("labels", {}).get(NODE_NAME, status.get("nodeName"))
    if label != status.get("nodeName"):
        problems.append(f"runs on {status.get('nodeName')}, and its label says {label}")
    return problems


def made_from(own: Json | None, vm: Json) -> int:
    """Return the newest generation when the instance has its template, else the one that it names.

    An adopted instance may name that of a former VM: it does not count.
    """
    if own is not None and _names_its_template(own) and not _differs(own, vm):
        return int(vm["metadata"]["generation"])
    reported = "" if own is None else own["metadata"].get("annotations", {}).get(VM_GENERATION, "")
    is_one = bool(reported) and int(reported) <= vm["metadata"]["generation"]
    return int(reported) if is_one else int(vm.get("status", {}).get("observedGeneration", 0))


def _is_outdated(vm: Json, own: Json | None) -> bool:
    """Whether the running instance differs from the template."""
    return own is not None and _phase(own) not in OVER and _names_its_template(own) and _differs(own, vm)


def _differs(own: Json, vm: Json) -> bool:
    """Whether an instance differs in memory, node selection or one label: all that differs here."""
    template = vm["spec"]["template"]
    tiers = [(meta.get("labels") or {}).get(TIER) for meta in (own["metadata"], template.get("metadata") or {})]
    knows_labels = TEMPLATE_METADATA_HASH in own["metadata"].get("annotations", {})
    return bool(form(own["spec"]) != form(template["spec"]) or (knows_labels and tiers[0] != tiers[1]))


def _names_its_template(own: Json) -> bool:
    return TEMPLATE_HASH in own["metadata"].get("annotations", {})


def form(spec: Json) -> tuple[str, Json]:
    """Return what differs between machines here: memory and node selection."""
    return spec["domain"]["memory"]["guest"], spec.get("nodeSelector") or {}


def _mirror(body: Json) -> dict[str, tuple[str, str]]:
    listed = body.get("status", {}).get("conditions", ())
    return {item["type"]: (item["status"], item.get("reason", "")) for item in listed if item["type"] not in OWN}


def condition(body: Json, kind: str) -> Json:
    """Return a condition of an object; empty when it has none."""
    listed = body.get("status", {}).get("conditions", ())
    return next((item for item in listed if item["type"] == kind), {})


def _phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))
