# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run mutants of one file in this process: python -m tests.mutation.run_file, with a Request as JSON on standard input.

The tests are collected and run once, to learn which of them execute which lines. Then each mutant has a forked child,
in which the changed function's code is exchanged and the tests that execute its lines run until one fails. What is
changed in a constant or table of the module is exchanged the same way. For changes in a class body and in defaults of
parameters, the child imports the changed module.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.mutants import Mutant, generate
from tests.mutation.targets import ROOT

OUTSIDE = "not (component or lab or guest or root)"
SLOW_SECONDS = 2.0
"""A test that takes longer runs with no mutant."""
KILLED, SURVIVED = 1, 0


class Plugin:
    """Take pytest's place in running the collected tests."""

    def __init__(self, path: Path, indices: list[int] | None, deadline: float) -> None:
        self.path = path
        self.indices = indices
        self.deadline = deadline
        self.failed = False
        self.seconds: dict[str, float] = defaultdict(float)
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.outcomes: dict[int, int] = {}
        self.error = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Do not shrink failing examples: one failure kills a mutant."""
        import hypothesis  # noqa: PLC0415  pytest wants to import it first

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutation", hypothesis.settings.get_profile("virtops"), phases=phases, max_examples=30, database=None
        )
        hypothesis.settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        self.seconds[report.nodeid] += report.duration

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.error = "the tests cannot be collected"
            return True
        items = session.items
        for item, following in zip(items, [*items[1:], None], strict=True):
            with _traced(str(self.path), self.lines[item.nodeid]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed and not self._passes_untraced(item, following):
                self.error = f"{item.nodeid} fails without a mutant"
                return True
        self._judge(sorted(items, key=lambda item: self.seconds[item.nodeid]))
        return True

    def _passes_untraced(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        """Run a test again that failed, perhaps because it measures time. It runs with no mutant."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.seconds[item.nodeid] += SLOW_SECONDS
        is_passed, self.failed = not self.failed, False
        return is_passed

    def _judge(self, items: list[pytest.Item]) -> None:
        items = [item for item in items if self.seconds[item.nodeid] < SLOW_SECONDS]
        tree = ast.parse(self.path.read_bytes())
        mutants = generate(tree)
        caches = [obj for obj in gc.get_objects() if isinstance(obj, functools._lru_cache_wrapper)]
        functions = [
            obj
            for obj in gc.get_objects()
            if isinstance(obj, types.FunctionType) and obj.__code__.co_filename == str(self.path)
        ]
        gc.collect()
        gc.freeze()
        for index in range(len(mutants)) if self.indices is None else self.indices:
            if time.monotonic() > self.deadline:
                return
            mutant = mutants[index]
            if mutant.function is None:
                self.outcomes[index] = self._judge_outside(mutant, tree, items, caches)
                continue
            lines = set(range(mutant.lines[0], mutant.lines[1] + 1))
            near = [item for item in items if lines & self.lines[item.nodeid]]
            if not near:
                self.outcomes[index] = SURVIVED
                continue
            exchange = functools.partial(_exchange_function, self.path, mutant, tree, functions)
            self.outcomes[index] = self._judge_in_child(exchange, near, caches)

    def _judge_outside(self, mutant: Mutant, tree: ast.Module, items: list[pytest.Item], caches: list[Any]) -> int:
        if isinstance(mutant.statement, ast.Assign | ast.AnnAssign):
            exchange = functools.partial(_exchange_constant, self.path, mutant)
            return self._judge_in_child(exchange, items, caches)
        return _in_child(lambda: _import_and_test(self.path, mutant, tree), 120.0)

    def _judge_in_child(self, exchange: Callable[[], None], items: list[pytest.Item], caches: list[Any]) -> int:
        def run() -> int:
            for cache in caches:
                cache.cache_clear()
            try:
                exchange()
            except Exception:  # each test would notice a module that does not load
                return KILLED
            self.failed = False
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    return KILLED
            return SURVIVED

        return _in_child(run, 5.0 + 10 * sum(self.seconds[item.nodeid] for item in items))


def _in_child(run: Callable[[], int], seconds: float) -> int:
    """Fork, run, return its outcome. A child that needs too much time or memory has noticed the mutant."""
    pid = os.fork()
    if pid == 0:
        outcome = KILLED
        with contextlib.suppress(BaseException):
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1)
            os.dup2(devnull, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
            signal.alarm(int(4 * seconds) + 20)
            outcome = run()
        os._exit(outcome)
    _unused, status = os.waitpid(pid, 0)
    return SURVIVED if status == 0 else KILLED


def _exchange_function(path: Path, mutant: Mutant, tree: ast.Module, functions: list[types.FunctionType]) -> None:
    mutant.apply()
    code = compile(tree, str(path), "exec", dont_inherit=True)
    changed = {(inner.co_qualname, inner.co_firstlineno): inner for inner in _codes(code)}
    for function in functions:
        before = function.__code__
        if (before.co_qualname, before.co_firstlineno) == mutant.function:
            function.__code__ = changed[mutant.function]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _exchange_constant(path: Path, mutant: Mutant) -> None:
    """Run one assignment again, changed, and give its new value to all modules that have imported the old one."""
    mutant.apply()
    flags = __future__.annotations.compiler_flag
    code = compile(ast.Module([mutant.statement], []), str(path), "exec", flags=flags, dont_inherit=True)
    for module in [module for module in sys.modules.values() if getattr(module, "__file__", None) == str(path)]:
        before = dict(vars(module))
        exec(code, vars(module))
        for name in [name for name, value in vars(module).items() if value is not before.get(name)]:
            for other in list(sys.modules.values()):
                if getattr(other, name, None) is before.get(name):
                    setattr(other, name, vars(module)[name])


def _import_and_test(path: Path, mutant: Mutant, tree: ast.Module) -> int:
    """Unload the modules of this repository, and run the tests with the changed module."""
    mutant.apply()
    code = compile(tree, str(path), "exec", dont_inherit=True)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
        return code if loader.path == str(path) else original(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "") or "").startswith(str(ROOT)) and not name.startswith("tests.mutation"):
            del sys.modules[name]
    for name in [name for name in sys.modules if name.startswith("ansible_collections.virtops")]:
        del sys.modules[name]
    return SURVIVED if pytest.main([*ARGUMENTS, "-x", *TESTS]) == 0 else KILLED


@contextlib.contextmanager
def _traced(path: str, lines: set[int]) -> Iterator[None]:
    """Record the executed lines of one file, in all threads."""

    def local(frame: types.FrameType, event: str, _unused: Any) -> Any:
        lines.add(frame.f_lineno)
        return local

    def entered(frame: types.FrameType, _event: str, _unused: Any) -> Any:
        return local(frame, "call", None) if frame.f_code.co_filename == path else None

    threading.settrace(entered)
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)


ARGUMENTS = ["-q", "-n0", "-p", "no:cacheprovider", "-p", "no:terminalreporter", "-m", OUTSIDE]
ARGUMENTS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
TESTS: list[str] = []


def main() -> int:
    request = json.load(sys.stdin)
    TESTS[:] = request["tests"]
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    plugin = Plugin(ROOT / request["file"], request["indices"], time.monotonic() + request["seconds"])
    pytest.main([*ARGUMENTS, *TESTS], plugins=[plugin])
    json.dump({"outcomes": list(plugin.outcomes.items()), "error": plugin.error}, answer)
    answer.close()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
