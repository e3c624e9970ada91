# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission: whose writes pass, what is refused, and that what is judged stays bounded."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_VERDICT = "controlplane/api/admission/verdict.py"
_IDENTITY = "controlplane/api/admission/identity.py"
_VMI = "controlplane/api/admission/kinds/vmi.py"
_REVIEW = "controlplane/api/admission/review.py"
_METADATA = "controlplane/api/admission/validate/metadata.py"
_COMPUTE = "controlplane/api/admission/validate/compute.py"
_CHECK = "controlplane/api/admission/validate/check.py"
_UNCHANGED = "controlplane/api/admission/validate/unchanged.py"
_BY_VERDICT = ("tests/controlplane/api/admission/test_verdict.py",)
_BY_FIELDS = (
    "tests/controlplane/api/admission/test_verdict.py",
    "tests/controlplane/api/admission/validate/test_check.py",
)
_BY_BOUNDED = ("tests/controlplane/api/admission/validate/test_bounded.py",)
_BY_IDENTITY = ("tests/controlplane/api/admission/test_identity.py",)
_BY_REVIEW = ("tests/controlplane/api/admission/test_review.py",)
_BY_UNCHANGED = ("tests/controlplane/api/admission/validate/test_unchanged.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_VERDICT,
        line="is_ours(request.user, settings) or request.operation",
        without='request.user.startswith("system:serviceaccount:") or request.operation',
        because="Every service account of the cluster would write what it likes, unjudged.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='f"system:serviceaccount:{settings.namespace}:{account}" for account',
        without=(
            'f"system:serviceaccount:{request_namespace}:{account}" for request_namespace in '
            '(user.split(":")[2:3] or [""]) for account'
        ),
        because="An account of our name in anybody's namespace is not ours.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if request.subresource:\n        return _review_subresource(request)\n",
        without="",
        because="A status that a user writes would be taken for the control plane's word.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='    if request.subresource != "status":',
        without="    if request.subresource:",
        because="The status of a VM or VMI is written by the control plane only.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if kind is None:\n        text",
        without="    if kind is None:\n        return Verdict()\n        text",
        because="A kind that this version cannot judge must not pass unjudged.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if held:\n        return Verdict(problems=held, code=403)\n",
        without="",
        because="Whoever takes our finalizer off a deleted VMI frees its name while its guest runs.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='    if _meta(obj).get("deletionTimestamp"):\n        return Verdict()\n',
        without="",
        because="What is being deleted must not be kept by a rule that it breaks.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    yield from kind.rules.metadata(meta, before)\n",
        without="",
        because="Reserved labels and owners would be anybody's to write.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='obj.get("spec") == old.get("spec") and set(obj) <= set(old)',
        without='obj.get("spec") == old.get("spec")',
        because="A field that nobody knows beside an unchanged spec would be dropped in silence.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line='obj.get("spec") == old.get("spec") and set(obj) <= set(old)',
        without="False",
        because="An object of another version could not even be labelled or let go.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if old is not None and kind.rules.unchangeable:",
        without="    if False:",
        because="A running instance's spec would say something else than what runs.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    return filled if creating else _with_finalizers(filled, request.old, settings.finalizers)",
        without="    return filled",
        because="A replacing write would take our finalizers off a live object.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="request.uid if creating else None)",
        without="request.uid)",
        because="What is made up at creation would be made up anew by every update.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_REVIEW,
        line="    if len(data) > MAX_BYTES:",
        without="    if False:",
        because="An object without a bound costs everybody's admission its time.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="        if depth > MAX_DEPTH:",
        without="        if False:",
        because="A deeply nested object breaks whatever walks it.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="            if len(one) > MAX_ITEMS:",
        without="            if False:",
        because="A list without a bound costs everybody's admission its time.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="    if value is not None and not isinstance(value, dict):",
        without="    if False:",
        because="What is no object must be refused, not crash its judge.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="    return value if isinstance(value, dict) else None",
        without='    return _object(raw, "")',
        because="An object that was let in before must remain possible to repair.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="    shown = verdict.problems[:MAX_CAUSES]",
        without="    shown = verdict.problems",
        because="An answer of a million problems is none.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_REVIEW,
        line="    except RecursionError as error:",
        without="    except ZeroDivisionError as error:",
        because="Nesting that the decoder gives up on must be refused with a reason.",
        tests=_BY_REVIEW,
    ),
    Guard(
        file=_METADATA,
        line="        if listed.get(name) != before.get(name):",
        without="        if name in listed and name not in before:",
        because="The control plane's labels are not a user's to change or to take.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_METADATA,
        line='    yield from check_reserved(metadata.labels, {}, below(path, "labels"))\n',
        without="",
        because="A template would hand the control plane's labels to its instances.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VMI,
        line='meta.annotations, before.annotations, "metadata.annotations", reserved=names.RESERVED_ANNOTATIONS',
        without='{}, {}, "metadata.annotations", reserved=names.RESERVED_ANNOTATIONS',
        because="What an instance was made from is not a user's to write.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if kind.rules.keep is not None and request.old is not None:",
        without="    if False:",
        because="A replace with the file that a machine was made from would give its guest another UUID.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_IDENTITY,
        line='    ("domain", "firmware", "serial"),\n',
        without="",
        because="A serial number that was made up once cannot be made up again.",
        tests=(*_BY_IDENTITY, *_BY_VERDICT),
    ),
    Guard(
        file=_IDENTITY,
        line='    ("domain", "machine", "type"),\n',
        without="",
        because="A machine would get another board when the default has changed.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_IDENTITY,
        line="        if isinstance(before, str) and before and",
        without="        if before and",
        because="What an older version let in may be of any shape, and would be carried on for ever.",
        tests=_BY_IDENTITY,
    ),
    Guard(
        file=_METADATA,
        line="    elif name and not matches(SUBDOMAIN, name):",
        without="    elif False:",
        because="A name becomes Pod names, host names and paths.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_VERDICT,
        line="    if given is not None and not isinstance(given, dict):",
        without="    if False:",
        because="Metadata that is no object would pass for none.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file=_CHECK,
        line="    if len(found) == MAX_PROBLEMS:\n        return found\n",
        without="    if len(found) > MAX_PROBLEMS:\n        return found\n",
        because="Every rule would be gone through for an answer that is long enough already.",
        tests=_BY_BOUNDED,
    ),
    Guard(
        file=_CHECK,
        line="*islice(fresh, MAX_PROBLEMS - len(found))",
        without="*fresh",
        because="One bad value costs two bytes and is said in two hundred.",
        tests=_BY_BOUNDED,
    ),
    Guard(
        file="controlplane/api/admission/fields.py",
        line="    return list(islice(_object(value, kind, path), MAX_PROBLEMS))",
        without="    return list(_object(value, kind, path))",
        because="To look up what each of ten thousand unknown fields may have meant keeps everybody else waiting.",
        tests=_BY_BOUNDED,
    ),
    Guard(
        file=_CHECK,
        line="rule.path not in around and ",
        without="",
        because="A rule would say again of a whole field what is said of a part of it.",
        tests=_BY_BOUNDED,
    ),
    Guard(
        file=_CHECK,
        line="        if name not in ROOT_FIELDS:",
        without="        if False:",
        because="A field beside spec that nobody knows must be refused by name.",
        tests=_BY_FIELDS,
    ),
    Guard(
        file=_UNCHANGED,
        line='    for name in sorted(set(new) - set(old) - {"spec"}):',
        without="    for name in ():",
        because="A field beside spec that is new must be refused, not dropped.",
        tests=_BY_UNCHANGED,
    ),
    Guard(
        file=_UNCHANGED,
        line="and _names(old) == _names(new):",
        without="and len(old) == len(new):",
        because="Something swapped in a list is a change of the list.",
        tests=_BY_UNCHANGED,
    ),
    Guard(
        file=_COMPUTE,
        line="    if limit == 0:\n",
        without="    if False:\n",
        because="A limit of nothing is none: a guest would take all CPUs of a node, and a quota would count nothing.",
        tests=_BY_VERDICT,
    ),
    Guard(
        file="controlplane/api/admission/kinds/replica_set.py",
        line="    default=_leave,\n",
        without="",
        because="Without it the schema answers first, which names no remedy, and nothing that is not built.",
        tests=("tests/controlplane/api/admission/kinds/test_replica_set.py",),
    ),
)
