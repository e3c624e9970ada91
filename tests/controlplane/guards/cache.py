# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches and own answers: nothing is gone that was not seen to go, and no view is older than one's own writes."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_WATCH = "controlplane/kube/watch.py"
_STORE = "controlplane/kube/cache.py"
_OVERLAY = "controlplane/engine/overlay.py"
_ANSWERS = "controlplane/engine/answers.py"
_BY_WATCH = ("tests/controlplane/kube/test_watch.py",)
_BY_STORE = ("tests/controlplane/kube/test_cache.py",)
_BY_OVERLAY = ("tests/controlplane/engine/test_overlay.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/engine/overlay.py",
        line="            if after is None or look(after).uid != was:",
        without="            if after is None:",
        because="After a relist an answer about the former object of a name would be shown when the next one has gone.",
        tests=("tests/controlplane/engine/test_overlay.py",),
    ),
    Guard(
        file=_WATCH,
        line="if key not in seen and number_of(self.version(key)) <= version]:",
        without="if key not in seen]:",
        because="What was made after the list began is not gone because the list does not have it.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="            if not token:\n                break\n",
        without="            break\n",
        because="Only a list that was read to its end may say that something is gone.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="        if version and version >= self.position:\n            return version\n",
        without="        return version\n",
        because="A server that is behind must not take us back in history.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="        if version and self._from_quorum:\n            raise HistoryRewoundError(said)\n",
        without="",
        because="After a restored etcd nothing that is known is true, and nobody would say so.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="            except Gone as error:",
        without="            except ZeroDivisionError as error:",
        because="A position that is too old must end in a new list.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='                self._list_at = float("-inf")\n                await',
        without="                await",
        because="A position that is too old must end in a new list.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="        if refused:\n            self.synced = False\n",
        without="",
        because="Who may not read any more is told of no change: absence means nothing then.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='        if kind == "ERROR":\n            raise',
        without="        if False:\n            raise",
        because="An error inside a stream is no object.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='        if kind in {"ADDED", "MODIFIED"} and version > self.position:',
        without='        if kind in {"ADDED", "MODIFIED"}:',
        because="A replayed event must not bring back what is gone.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line='        elif kind == "DELETED":\n            self.remove(key_of(seen), raw)',
        without='        elif kind == "DELETED":\n            self.remove(key_of(seen))',
        because="A removed object's last state, the kubelet's last word, must not be lost.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="delay = retry_after_seconds(error) + longest",
        without="delay = longest",
        because="A server that asks us to stay away must not be asked again.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_WATCH,
        line="                self._from_quorum |= causes_reason(error, POSITION_TOO_LARGE)\n",
        without="",
        because="A position that no server has come to must be settled by the quorum.",
        tests=_BY_WATCH,
    ),
    Guard(
        file=_STORE,
        line="        if position <= self.position:\n            return\n",
        without="",
        because="The position never goes back.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_STORE,
        line="or self._is_passed(key, seen):\n            return key",
        without="or False:\n            return key",
        because="An older state must not take the place of a newer one.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_STORE,
        line="(last is not None and self._is_passed(key, peek(last)))",
        without="False",
        because="A late word about an earlier object of the name must not remove the present one.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_STORE,
        line='    metadata.pop("managedFields", None)\n',
        without="",
        because="Half of each object is what nobody decides by.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_STORE,
        line="    for name in ANNOTATIONS_NOT_KEPT:\n        annotations.pop(name, None)\n",
        without="",
        because="The copy of the whole object that kubectl leaves is kept by nobody.",
        tests=_BY_STORE,
    ),
    Guard(
        file=_OVERLAY,
        line="        if record.is_gone:  # whatever else",
        without="        if False:  # whatever else",
        because="What the API server said is gone must not be shown again by a cache that is behind.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="        if answer.version < max(",
        without="        if False and answer.version < max(",
        because="A late answer must not cover what the cache knows better.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line='        if body["metadata"]["uid"] not in gone:',
        without="        if True:",
        because="What was seen to go while a question was answered would be there once more, until the next event.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="        same = held if held.uid == uid else Record(uid)",
        without="        same = held",
        because="A second object of the name must not inherit what was said about the first.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="record.is_delete_sent and record.uid == uid",
        without="record.is_delete_sent",
        because="A second object of the name must not count as deleted.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="        self._take(key, body, least=self._cache.position + 1)",
        without="        self._take(key, body, least=0)",
        because="An object outside the selection, found by a quorum read, could never be acted on.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="        if is_last_state(body):\n            self.note_absence",
        without="        if False:\n            self.note_absence",
        because="An object that our own write ended would be shown as if it lived.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line=(
            "            if ended is not None:\n"
            "                self._tell(key, ended.raw, self.get(key))\n"
            "\n"
            "    def _settle"
        ),
        without="            pass\n\n    def _settle",
        because="Whoever waits for an answer that ended without an event would wait for ever.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="                if shown is not None:\n                    overlay.note_absence(key, shown)",
        without=(
            "                if (now := overlay.uid(key)) is not None:\n"
            "                    overlay.note_absence(key, now)"
        ),
        because="An object made while the question was under way is not what was asked about.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line=(
            "        except NotFound:\n"
            "            if overlay:\n"
            "                overlay.note_absence(key, uid)\n"
            "            raise"
        ),
        without="        except NotFound:\n            raise",
        because="An object that is gone would be deleted until the cache knows.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_OVERLAY,
        line="        if overlay:\n            overlay.note_delete(key, uid)\n",
        without="",
        because="An object would be deleted again and again until the cache knows.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_ANSWERS,
        line='    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")',
        without='    waits = meta.get("finalizers")',
        because="A Pod that is shutting down is not gone.",
        tests=_BY_OVERLAY,
    ),
    Guard(
        file=_WATCH,
        line="self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:",
        without="self._clock.monotonic() - opened < 0:",
        because="A server that ends every stream at once would be asked without a pause.",
        tests=_BY_WATCH,
    ),
)
