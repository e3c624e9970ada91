# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reconcile contract: a pass stops where what it rests on is not true, a failing key waits, nobody is held up."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_RECONCILE = "controlplane/engine/reconcile.py"
_QUEUE = "controlplane/engine/queue.py"
_BACKOFF = "controlplane/engine/backoff.py"
_RUNNER = "controlplane/engine/runner.py"
_BY_RECONCILE = ("tests/controlplane/engine/test_reconcile.py",)
_BY_QUEUE = ("tests/controlplane/engine/test_queue.py",)
_BY_BACKOFF = ("tests/controlplane/engine/test_backoff.py",)
_BY_RUNNER = ("tests/controlplane/engine/test_runner.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_QUEUE,
        line="min(self._ripe, key=lambda one: self._at_work[one])",
        without="next(iter(self._ripe))",
        because="A namespace whose passes take long would come to have all workers but those that others have.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="(one for one in self._ripe if one not in self._at_work)",
        without="iter(self._ripe)",
        because="A namespace whose passes take long would come to have all workers.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="            self._ripe.move_to_end(namespace)\n",
        without="            pass\n",
        because="Of namespaces that have as many under way, the first would always come first.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        if key in self._ripe.get(key.namespace, ()):\n            return\n",
        without="",
        because="What changes while it waits for its turn would have two, and be worked on by two workers.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        if not self._at_work[key.namespace]:\n            del self._at_work[key.namespace]\n",
        without="",
        because="Every namespace that ever was would be remembered for as long as the process lives.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        if again:\n",
        without="        if again and look_again_in is None:\n",
        because="What changed during a pass would be looked at when the alarm rings, five minutes later.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        self._not_before.pop(key, None)\n        self._working.add(key)",
        without="        self._working.add(key)",
        because="Every key that ever failed would be remembered for as long as the process lives.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_RECONCILE,
        line="reconciler.observe(key) if acted else world",
        without="world",
        because="What is told after a step would be how things were before it.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="if plan == before:",
        without="if False:",
        because="A step of which nothing comes would be taken without end.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="DROPPED = (Conflict, NotFound, NotLeader, Unavailable)",
        without="DROPPED = (NotFound, NotLeader, Unavailable)",
        because=(
            "A conflict says that the pass was based on an old state: it must not be told as the object's problem."
        ),
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="DROPPED = (Conflict, NotFound, NotLeader, Unavailable)",
        without="DROPPED = (Conflict, NotFound, NotLeader)",
        because="A write without an answer may have happened: nothing may be told of it.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="DROPPED = (Conflict, NotFound, NotLeader, Unavailable)",
        without="DROPPED = (Conflict, NotFound, Unavailable)",
        because="Who leads no more must not tell users that something was refused.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="            raise _Refused(problem.error) from problem.error\n        acted = True",
        without="        acted = True",
        because="After a refused step the next one must not be taken: it may rest on it.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line=(
            "            if await _tell(reconciler, reconciler.observe(key) if acted else world, None):\n"
            "                return _Came.TOLD\n            continue"
        ),
        without="            await _tell(reconciler, world, None)\n            continue",
        because="What was told first changes the world: the steps after it were decided on the old one.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="    except ApiError as error:\n        refused:",
        without="    except ZeroDivisionError as error:\n        refused:",
        because="A refused status is the object's problem, not a bug in a reconciler.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="            reconciler.tell_refusal(world, refused[-1])\n",
        without="",
        because="A refused write that nobody tells leaves the user without a reason.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="        except (Conflict, NotFound) as error:\n            missed = missed or error\n",
        without="        except (Conflict, NotFound):\n            raise\n",
        because="One object that has changed meanwhile must not hold up all others of a step.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="            if len(refused) == REFUSALS or isinstance(error, Throttled):",
        without="            if False:",
        because="A quota that is used up would be asked hundreds of times in each pass.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="    if missed is not None and not refused:",
        without="    if False:",
        because="A step whose every action met a conflict has done nothing and must back off.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_RECONCILE,
        line="    for _unused in range(ROUNDS):",
        without="    while True:",
        because="One object whose writes always open a next step must not keep the worker for ever.",
        tests=_BY_RECONCILE,
        may_hang=True,
    ),
    Guard(
        file=_RECONCILE,
        line="Outcome(retry_after_seconds(refused.error) or None, refused.error)",
        without="Outcome(None, refused.error)",
        because="Who was asked to stay away stays away so long.",
        tests=_BY_RECONCILE,
    ),
    Guard(
        file=_QUEUE,
        line=(
            "        if key in self._working:\n"
            "            if after <= 0:\n"
            "                self._again.add(key)\n"
            "            return\n"
        ),
        without="",
        because="Two workers on one key decide on each other's half-done work.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="                self._again.add(key)\n",
        without="                pass\n",
        because="A change during a pass would never be looked at.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        due = max(now + after, self._not_before.get(key, now))",
        without="        due = now + after",
        because="A storm of events about a failing object would undo its back-off.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="now + max(self.backoff.fail(key), look_again_in or 0.0)",
        without="now + self.backoff.fail(key)",
        because="A throttling server would be asked again before the time that it named.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        self.backoff.forget(key)\n",
        without="",
        because="One failure years ago must not slow down the next one.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_QUEUE,
        line="        if key not in self._due or due < self._due[key][0]:",
        without="        if key not in self._due:",
        because="A change must be looked at now, not when an alarm set long ago rings.",
        tests=_BY_QUEUE,
    ),
    Guard(
        file=_BACKOFF,
        line="min(self.cap_seconds, self.base_seconds * 2.0 ** min(count, 30))",
        without="self.base_seconds * 2.0 ** min(count, 30)",
        because="A key that failed for long would not be looked at for years.",
        tests=_BY_BACKOFF,
    ),
    Guard(
        file=_BACKOFF,
        line="        return whole * (0.5 + self.random() / 2)",
        without="        return whole",
        because="Without jitter everything that failed together comes back together.",
        tests=_BY_BACKOFF,
    ),
    Guard(
        file=_RUNNER,
        line="        while self._running < self._limit and (key",
        without="        while (key",
        because="A thousand objects at once must not open a thousand requests.",
        tests=_BY_RUNNER,
    ),
    Guard(
        file=_RUNNER,
        line="        except Exception as error:\n            log.exception(",
        without="        except OSError as error:\n            log.exception(",
        because="A bug about one object must not end the process for all.",
        tests=_BY_RUNNER,
    ),
    Guard(
        file=_RUNNER,
        line="        outcome = Outcome(look_again_in=0.0)  # stays",
        without="        outcome = Outcome()  # stays",
        because="A pass that was cancelled proved nothing and must come again.",
        tests=_BY_RUNNER,
    ),
    Guard(
        file=_QUEUE,
        line="max(self.backoff.fail(key), look_again_in or 0.0)",
        without="(look_again_in or self.backoff.fail(key))",
        because="A server that asks for a second would have what always fails tried every second, for ever.",
        tests=_BY_QUEUE,
    ),
)
