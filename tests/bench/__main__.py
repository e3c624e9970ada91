# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the benchmarks, all or those named: `python -m tests.bench [NAME ...]`; one JSON line per figure.

A benchmark creates the cluster that it needs and deletes it. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import Any

BENCHES = {
    "ans-noop": "tests.bench.ans_noop",
    "console": "tests.bench.console",
    "control-plane": "tests.bench.control_plane",
    "hostile-node": "tests.bench.hostile_node",
    "idle-launcher": "tests.bench.idle_launcher",
    "idle-node": "tests.bench.idle_node",
    "lab-start": "tests.bench.lab_start",
    "mig-busy": "tests.bench.moves:run_busy",
    "mig-evacuate-10": "tests.bench.mig_evacuate",
    "mig-idle": "tests.bench.moves:run_idle",
    "mig-parallel": "tests.bench.tunnel_parallel",
    "mig-stream": "tests.bench.tunnel",
    "node-start": "tests.bench.node_start",
    "node-start-20": "tests.bench.node_start_many",
    "overlay": "tests.bench.overlay",
    "role-deploy": "tests.bench.role_deploy",
    "start-storm": "tests.bench.start_storm",
}
"""name -> MODULE[:FUNCTION], by default run(report). Imported only when it runs: each needs other packages."""


def report(figure: dict[str, Any]) -> None:
    """Print one figure."""
    print(json.dumps(figure), flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks; the exit code is 0 when all could be measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which: {', '.join(BENCHES)} (default: all)")
    chosen = parser.parse_args(argv).name or list(BENCHES)
    unknown = [name for name in chosen if name not in BENCHES]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    failed = False
    for name in chosen:
        print(f"bench {name}", file=sys.stderr, flush=True)
        try:
            module, _unused, function = BENCHES[name].partition(":")
            getattr(importlib.import_module(module), function or "run")(report)
        except Exception as error:  # a failing benchmark must not hide the figures of the others
            print(f"bench {name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
