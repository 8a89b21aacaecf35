"""Plants bugs one at a time and runs the tests that cover the line: what survives, no test notices.

    python scripts/mutants.py map                      # once: which tests run which lines
    python scripts/mutants.py run --count 100          # 100 fresh bugs; the seed is printed
    python scripts/mutants.py run --since origin/main  # in the files that changed since then
    python scripts/mutants.py run --changed            # in those of this branch, or of 20 commits
    python scripts/mutants.py run src/tensorsplit/storage --tests tests/storage    # without a map

The map is in `build/mutants`. A bug is killed if a test fails, or does not end in time.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tensorsplit"
BUILD = ROOT / "build" / "mutants"
MAP = BUILD / "map.json"

MOST_SECONDS, MOST_TESTS = 60.0, 200
"""Of the tests that cover a line the fastest are run, for so long and so many at most."""

_LATELY = 20
_FEWEST_JUDGED = 30

_FAILED, _FOUND = "failed.txt", "found.txt"

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


class Map(TypedDict):
    """Which tests run which lines of which files, and how long each takes."""

    lines: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]


class Mutant(NamedTuple):
    """A bug: a piece of a file, and what takes its place."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before!r} -> {self.after!r}"

    def planted(self, text: bytes) -> bytes:
        """Return the file's text with the bug in it."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every bug that the operators plant in a file."""
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = str(path.relative_to(ROOT))
    for node in _code(ast.parse(text)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        before = text[start:end].decode()
        for after in _changed(node):
            if after != before:
                yield Mutant(name, node.lineno, start, end, before, after)


def _code(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the nodes that run: no annotations, docstrings, assertions or messages of errors."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            children = value if isinstance(value, list) else [value]
            waiting += [child for child in children if isinstance(child, ast.AST)]
        if isinstance(node, (ast.expr, ast.stmt)):
            yield node


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the texts that stand for a node with a bug."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        ops = [SWAPS[type(node.ops[0])](), *node.ops[1:]]
        yield ast.unparse(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
            yield f"({ast.unparse(ast.BinOp(node.left, SWAPS[type(node.op)](), node.right))})"
    elif isinstance(node, ast.BoolOp):
        yield f"({ast.unparse(ast.BoolOp(SWAPS[type(node.op)](), node.values))})"
        yield f"({ast.unparse(node.values[0])})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield str(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield f"{CALLS[node.func.id]}({', '.join(map(ast.unparse, (*node.args, *node.keywords)))})"
    elif isinstance(node, ast.stmt):
        yield from _changed_statement(node)


def _changed_statement(node: ast.stmt) -> Iterator[str]:
    """Yield the texts that stand for a statement with a bug."""
    if isinstance(node, (ast.Break, ast.Continue)):
        yield "continue" if isinstance(node, ast.Break) else "break"
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "return None"
    elif isinstance(node, ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    ):
        yield "pass"


def make_map(paths: list[str]) -> None:
    """Run the tests under coverage and write down which of them run which lines, and how long."""
    from coverage import CoverageData

    BUILD.mkdir(parents=True, exist_ok=True)
    data, times = BUILD / "coverage", BUILD / "times.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile"]
    options = ["--cov=tensorsplit", "--cov-context=test", "--cov-report=", f"--junitxml={times}"]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(SOURCE.parent)}
    subprocess.run([*command, *options, *paths], cwd=ROOT, env=environment, check=False)
    seconds = {
        (case.get("classname", ""), case.get("name", "")): float(case.get("time", "0"))
        for case in ET.parse(times).iter("testcase")  # noqa: S314 - pytest has just written it
    }
    found = CoverageData(str(data))
    found.read()
    lines: dict[str, dict[str, list[str]]] = {}
    for file in found.measured_files():
        name = str(Path(file).relative_to(ROOT))
        for line, contexts in found.contexts_by_lineno(file).items():
            tests = {context.partition("|")[0] for context in contexts if context}
            lines.setdefault(name, {})[str(line)] = sorted(tests)
    durations = {
        test: _seconds(test, seconds) for by in lines.values() for t in by.values() for test in t
    }
    _write(merged({"lines": lines, "seconds": durations}))


def _write(known: Map) -> None:
    """Write the map down; a line has the places of its tests among all of them, not their names."""
    places = {test: place for place, test in enumerate(known["seconds"])}
    lines = {
        file: {line: [places[test] for test in tests] for line, tests in by_line.items()}
        for file, by_line in known["lines"].items()
    }
    MAP.write_text(json.dumps({"lines": lines, "seconds": known["seconds"]}))


def _read() -> Map:
    """Return the map that was written down."""
    held = json.loads(MAP.read_text())
    tests = list(held["seconds"])
    lines = {
        file: {line: [tests[place] for place in places] for line, places in by_line.items()}
        for file, by_line in held["lines"].items()
    }
    return {"lines": lines, "seconds": held["seconds"]}


def merged(new: Map) -> Map:
    """Add the tests that ran now to the map of those that ran before."""
    old: Map = _read() if MAP.exists() else {"lines": {}, "seconds": {}}
    seconds = old["seconds"] | new["seconds"]
    lines: dict[str, dict[str, list[str]]] = {}
    for each in (old, new):
        for file, by_line in each["lines"].items():
            for line, tests in by_line.items():
                kept = [t for t in tests if each is new or t not in new["seconds"]]
                known = lines.setdefault(file, {}).setdefault(str(line), [])
                known += kept
    for by_line in lines.values():
        for tests in by_line.values():
            tests.sort(key=lambda test: seconds[test])
    return {"lines": lines, "seconds": seconds}


def _seconds(test: str, seconds: dict[tuple[str, str], float]) -> float:
    file, _, name = test.partition("::")
    *classes, name = name.split("::")
    module = ".".join([*Path(file).with_suffix("").parts, *classes])
    return seconds.get((module, name), 1.0)


def covering(
    mutant: Mutant, lines: dict[str, dict[str, list[str]]], seconds: dict[str, float]
) -> list[str]:
    """Return the tests that cover a line, the fastest first.

    Of a line that imports run they are those of the folder beside, then any that use the file;
    first those whose file is named like it or its folder, as the others are hundreds.
    """
    by_line = lines.get(mutant.path, {})
    tests = by_line.get(str(mutant.line)) or []
    if not tests:
        path = Path(mutant.path)
        named = {f"test_{name}" for name in (path.stem, path.parent.name)}
        beside = set(_beside(mutant.path, seconds))

        def rank(test: str) -> tuple[bool, bool, float]:
            is_named = Path(test.partition("::")[0]).stem in named
            return test not in beside, not is_named, seconds[test]

        tests = sorted(beside.union(*by_line.values()), key=rank)
    chosen, left = list[str](), MOST_SECONDS
    for test in tests[:MOST_TESTS]:
        left -= seconds[test]
        if left < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def _beside(path: str, tests: Iterable[str]) -> list[str]:
    """Return the tests of the folder that is to the tests what a file's is to the package."""
    folder = Path(path).relative_to(SOURCE.relative_to(ROOT)).parent
    while True:
        start = Path("tests", folder).as_posix() + "/"
        if found := [test for test in tests if test.startswith(start)]:
            return found
        if folder == folder.parent:
            return []
        folder = folder.parent


class Trial:
    """One bug, or none, in a copy of the package, and the process that runs tests on it."""

    def __init__(self, mutant: Mutant | None, tests: list[str], folder: Path) -> None:
        self.tests, self.folder = tests, folder
        self._originals: dict[Path, bytes] = {}
        if mutant is not None:
            target = folder / mutant.path
            self._originals[target] = target.read_bytes()
            target.write_bytes(mutant.planted(self._originals[target]))
        (folder / _FAILED).unlink(missing_ok=True)
        fork = multiprocessing.get_context("fork")
        self._process = fork.Process(target=_test, args=(tests, folder))
        self._process.start()
        self._deadline = monotonic() + 3 * MOST_SECONDS

    def verdict(self) -> str | None:
        """Return what came of it, and put the file right; None while the tests run."""
        found = "survived" if self._process.exitcode == 0 else "killed"
        if self._process.is_alive():
            if monotonic() < self._deadline:
                return None
            found = "killed by time"
        self.stop()
        return found

    def killers(self) -> list[str]:
        """Return the test that failed; all of them if none did, as where they can't be imported."""
        failed = self.folder / _FAILED
        return [failed.read_text()] if failed.exists() else self.tests

    def stop(self) -> None:
        """End the process if it runs, and put the file right."""
        if self._process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid or 0, signal.SIGKILL)
            self._process.kill()
        self._process.join()
        for target, original in self._originals.items():
            target.write_bytes(original)


class _Failures:
    """A plugin of pytest that writes down which test failed."""

    def __init__(self, folder: Path) -> None:
        self._failed = folder / _FAILED

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed.write_text(report.nodeid)


class _Collected:
    """A plugin of pytest that writes down which tests there are."""

    def __init__(self, folder: Path) -> None:
        self._found = folder / _FOUND

    def pytest_collection_finish(self, session: Any) -> None:
        self._found.write_text("\n".join(item.nodeid for item in session.items))


def _test(tests: list[str], folder: Path, *more: str) -> None:
    """Run tests in this process, a fork, with the package of a folder."""
    import pytest

    os.setpgid(0, 0)
    source = str(folder / "src")
    os.environ |= {"PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path[:0] = [str(ROOT), source]
    sys.dont_write_bytecode = True
    os.chdir(ROOT)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device, for its descriptor
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    plugins = [_Failures(folder), _Collected(folder)]
    os._exit(int(pytest.main([*options, *more, *tests], plugins=plugins)))


def _without_a_bug(tests: list[str], folder: Path) -> tuple[str, list[str]]:
    """Return what comes of tests on the package as it is, and which of them are to blame."""
    trial = Trial(None, tests, folder)
    while (found := trial.verdict()) is None:
        sleep(0.05)
    if found != "killed":
        return found, []
    if gone := _gone(tests, folder):
        return "is gone", gone
    return "fails without a bug", trial.killers()


def _wrong(killers: list[str], folder: Path, sound: set[str]) -> list[str]:
    """Return the tests that fail without a bug as well; those that pass become known as sound."""
    if sound.issuperset(killers):
        return []
    why, wrong = _without_a_bug(killers, folder)
    if wrong:
        print(f"{why}: {', '.join(wrong)}", flush=True)
    elif why == "survived":  # and was not stopped, as on a busy machine
        sound.update(killers)
    return wrong


def _gone(tests: list[str], folder: Path) -> list[str]:
    """Return the tests that are not there any more: pytest runs none beside one of these."""
    (folder / _FOUND).write_text("")
    files = sorted({test.partition("::")[0] for test in tests})
    files = [file for file in files if (ROOT / file).exists()]
    collecting = (files, folder, "--collect-only")
    process = multiprocessing.get_context("fork").Process(target=_test, args=collecting)
    process.start()
    process.join()
    found = set((folder / _FOUND).read_text().splitlines())
    return [test for test in tests if test not in found]


def _forget(known: Map, tests: list[str]) -> None:
    """Take tests off the map."""
    for by_line in known["lines"].values():
        for line in by_line:
            by_line[line] = [test for test in by_line[line] if test not in tests]
    for test in tests:
        known["seconds"].pop(test, None)


def _copies(count: int) -> list[Path]:
    """Copy the package into as many folders."""
    folders = [BUILD / f"copy-{number}" for number in range(count)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SOURCE, folder / SOURCE.relative_to(ROOT))
        subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
    return folders


def run(
    chosen: list[Mutant], processes: int, seconds: float = math.inf, given: Iterable[str] = ()
) -> Counter[str]:
    """Judge each bug, print those that survive, and return how many came to what.

    After the seconds no further bug is planted, and those whose tests still run are not judged.
    Tests that are given are run for each bug, and no map is read.
    """
    import numpy  # noqa: F401 - what is loaded here is not loaded for each bug again
    import onnx  # noqa: F401
    import onnx_ir  # noqa: F401
    import pytest  # noqa: F401

    given = list(given)
    known: Map = {"lines": {}, "seconds": {}} if given else _read()
    folders = _copies(processes)
    if given and _without_a_bug(given, folders[0])[0] != "survived":
        raise SystemExit("the tests that are given fail without a bug")
    sound = set[str]()

    results, waiting = Counter[str](), list(chosen)
    trials: dict[Trial, Mutant] = {}
    end = monotonic() + seconds
    while waiting or trials:
        if monotonic() > end:
            results["not judged"] += len(waiting) + len(trials)
            for trial in trials:
                trial.stop()
            break
        while waiting and folders:
            mutant = waiting.pop()
            if tests := given or covering(mutant, known["lines"], known["seconds"]):
                trials[Trial(mutant, tests, folders.pop())] = mutant
            else:
                results["not covered"] += 1
                print(f"not covered: {mutant}", flush=True)
        for trial, mutant in tuple(trials.items()):
            if found := trial.verdict():
                del trials[trial]
                folders.append(trial.folder)
                killers = trial.killers()
                asks = found == "killed" and not given
                if wrong := _wrong(killers, trial.folder, sound) if asks else []:
                    _forget(known, wrong)
                    waiting.append(mutant)
                    continue
                results[found] += 1
                if found != "killed":
                    print(f"{found}: {mutant}", flush=True)
        sleep(0.05)
    return results


def last_landed() -> str:
    """Return where this branch left main; on main itself the commit before the last 20 ones."""
    head = _git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        with contextlib.suppress(subprocess.CalledProcessError):
            if (base := _git("merge-base", "HEAD", main)) != head:
                return base
    commits = _git("rev-list", "--first-parent", f"--max-count={_LATELY + 1}", "HEAD").split()
    return commits[-1]  # the oldest one in a clone that has fewer


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def is_too_few(found: Counter[str], share: float) -> bool:
    """Return whether fewer bugs are killed than are to be; of few that are judged, never.

    Some bugs change nothing, and of a few there may be several by chance.
    """
    judged = found.total() - found["not judged"]
    return judged >= _FEWEST_JUDGED and found["killed"] + found["killed by time"] < share * judged


def main() -> int:
    """Run the command line; exit with 1 if fewer are killed than are to be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("action", choices=["map", "run"])
    parser.add_argument("paths", nargs="*", help="map: tests; run: files or folders of the package")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    since = parser.add_mutually_exclusive_group()
    since.add_argument("--since", help="only files that changed since this revision")
    since.add_argument("--changed", action="store_true", help="only files that changed lately")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="plant no longer than that")
    parser.add_argument("--tests", nargs="+", default=[], help="run: these, and read no map")
    parser.add_argument("--share", type=float, default=0.0, help="the share that is to be killed")
    given = parser.parse_intermixed_args()
    if given.action == "map":
        make_map(given.paths)
        return 0
    roots = [Path(path).resolve() for path in given.paths] or [SOURCE]
    files = [f for root in roots for f in (root.rglob("*.py") if root.is_dir() else [root])]
    if revision := given.since or (given.changed and last_landed()):
        changed = _git("diff", "--name-only", revision, "--", "src").split()
        files = [file for file in files if str(file.relative_to(ROOT)) in changed]
    every = [mutant for file in sorted(files) for mutant in mutants(file)]
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))  # noqa: S311
    print(f"{len(chosen)} of {len(every)} bugs, --seed {given.seed}", flush=True)
    found = run(chosen, given.processes, given.seconds, given.tests)
    print(", ".join(f"{count} {name}" for name, count in found.items()))
    return int(is_too_few(found, given.share))


if __name__ == "__main__":
    sys.exit(main())
