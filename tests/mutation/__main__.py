# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation tests of the files that decide.

python -m tests.mutation all [GLOB ...]      run all mutants, print a score for each file
python -m tests.mutation record [GLOB ...]   the same, and write the scores
python -m tests.mutation changed             run the mutants of lines that differ from the recorded ones, and of files
                                             whose tests differ a sample; fail when a file's score is below its record
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.mutation import scores
from tests.mutation.mutants import generate
from tests.mutation.targets import ROOT, find_files, find_tests

SAMPLE = 25
"""Recorded mutants to run again in a file whose tests have changed."""


@dataclass(frozen=True, slots=True)
class Job:
    file: str
    indices: list[int] | None
    """None: all."""
    known: dict[int, bool]
    floor: int


def run(job: Job, seconds: float) -> tuple[dict[int, bool], str]:
    """Run mutants of one file in a process of its own. Return index -> killed, and the error."""
    request = {"file": job.file, "tests": find_tests(job.file), "indices": job.indices, "seconds": seconds}
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins/module_utils'}"}
    command = [sys.executable, "-m", "tests.mutation.run_file"]
    try:
        done = subprocess.run(
            command, input=json.dumps(request), env=environment, cwd=ROOT, capture_output=True, text=True,
            timeout=seconds + 20, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {}, ""
    if not done.stdout:
        return {}, f"the run ended early: {done.stderr[-2000:]}"
    result = json.loads(done.stdout)
    return {index: bool(killed) for index, killed in result["outcomes"]}, result["error"]


def changed_jobs(files: list[str]) -> list[Job]:
    """Return the mutants to run because code or tests differ from the recorded ones."""
    records, jobs, absent = scores.read(), [], 0
    chance = random.Random(scores.git("rev-parse", "HEAD^{tree}"))
    for file in files:
        record = scores.find_record(file, records)
        if record is None:
            absent += 1
            continue
        is_same_test = scores.digest(file) == record.tests
        if scores.blob(file) == record.source and is_same_test:
            continue
        text = (ROOT / file).read_text()
        known = scores.known_outcomes(scores.recorded_source(record), text, record.survived)
        fresh = [index for index in range(len(generate(ast.parse(text)))) if index not in known]
        killed = [index for index, is_killed in known.items() if is_killed]
        again = [] if is_same_test else chance.sample(killed, min(SAMPLE, len(killed)))
        chance.shuffle(fresh)
        if fresh or again:
            jobs.append(Job(file, fresh + again, known, record.score))
    chance.shuffle(jobs)
    say(f"no score is recorded yet for {absent} of {len(files)} files ({scores.SCORES.name} names them)")
    return jobs


def run_changed(files: list[str], seconds: float, workers: int) -> int:
    jobs = changed_jobs(files)
    deadline = time.monotonic() + seconds
    say(f"{sum(len(job.indices or ()) for job in jobs)} mutants of {len(jobs)} files differ from the recorded ones")

    def run_in_time(job: Job) -> tuple[dict[int, bool], str]:
        remaining = deadline - time.monotonic()
        seconds_for_job = min(remaining, max(20.0, 2 * workers * seconds / max(1, len(jobs))))
        return run(job, seconds_for_job) if remaining > 0 else ({}, "")

    is_failed, skipped = False, 0
    with ThreadPoolExecutor(workers) as pool:
        for job, (outcomes, error) in zip(jobs, pool.map(run_in_time, jobs), strict=True):
            skipped += len(job.indices or ()) - len(outcomes)
            is_failed |= bool(error) or not _is_at_floor(job, outcomes)
            if error:
                say(f"failed: {job.file}: {error}")
    say(f"not run for lack of time: {skipped} mutants (make mutation runs all)")
    return 1 if is_failed else 0


def _is_at_floor(job: Job, outcomes: dict[int, bool]) -> bool:
    """Compare the best possible score with the floor: a mutant that was not run counts as killed."""
    if not outcomes:
        return True
    mutants = generate(ast.parse((ROOT / job.file).read_text()))
    survivors = sum(not is_killed for is_killed in {**job.known, **outcomes}.values())
    percent = scores.percent_of(len(mutants) - survivors, len(mutants))
    say(f"at most {percent:3} % (floor {job.floor} %), {len(outcomes)} run: {job.file}")
    if percent >= job.floor:
        return True
    for index, is_killed in sorted(outcomes.items()):
        if not is_killed:
            say(f"    {job.file}:{mutants[index].lines[0]}: no test fails with: {mutants[index].text}")
    say(f"failed: {job.file}: its score is below the recorded one. Add a test for a line above")
    return False


def run_all(files: list[str], *, is_recorded: bool, workers: int) -> int:
    is_failed = False
    records = scores.read()

    def run_whole(file: str) -> tuple[dict[int, bool], str]:
        return run(Job(file, None, {}, 0), 3600.0)

    with ThreadPoolExecutor(workers) as pool:
        for file, (outcomes, error) in zip(files, pool.map(run_whole, files), strict=True):
            if error or not outcomes:
                say(f"failed: {file}: {error or 'no mutant was run'}")
                is_failed = True
                continue
            before = scores.find_record(file, records)
            percent = scores.percent_of(sum(outcomes.values()), len(outcomes))
            is_lower = before is not None and percent < before.score
            is_failed |= is_lower
            say(
                f"{percent:3} % {sum(outcomes.values()):4} of {len(outcomes):4}: {file}"
                + " is below its record" * is_lower
            )
            if is_recorded:
                scores.write({**scores.read(), file: scores.make_record(file, outcomes, before)})
    return 1 if is_failed else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("all", "record", "changed"))
    parser.add_argument("globs", nargs="*", default=["*"], metavar="GLOB", help="only files that match one of these")
    parser.add_argument("--seconds", type=float, default=90.0, help="when to stop (changed)")
    parser.add_argument("--workers", type=int, default=2, help="files to run at a time")
    options = parser.parse_intermixed_args()
    files = [file for file in find_files() if any(fnmatch.fnmatch(file, glob) for glob in options.globs)]
    if options.what == "changed":
        return run_changed(files, options.seconds, options.workers)
    return run_all(files, is_recorded=options.what == "record", workers=options.workers)


if __name__ == "__main__":
    sys.exit(main())
