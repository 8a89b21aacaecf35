"""``python -m tests.fuzz``: each target in a child process, for some cases or for some time.

A case that fails is shrunk and printed. One that crashes, takes more than a minute or needs more
than four gigabytes ends the child; the stack is printed, and the model is where it was written.
Times are those of the processor: a run may have any priority beside other work.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz import page

MOST_SECONDS = 60
MOST_MEMORY = 4 << 30
ROUND = 500
"""Cases of one seed; then comes the next."""


def target(name: str, folder: Path) -> tuple[st.SearchStrategy[Any], Callable[[Any], str]]:
    """The cases of a target, and what is done with each."""
    if name == "arrays":
        from tests.fuzz import arrays

        return arrays.calls(), arrays.check
    from tests.fuzz import models

    cases = {"onnx": models.onnx_cases, "mutations": models.mutation_cases, "ir": models.ir_cases}[
        name
    ]
    return cases, partial(models.check, folder=folder)


def fuzz(name: str, first: int, cases: int, until: float, folder: Path, seen: Counter[str]) -> None:
    """Run cases, by seed after seed, and count in ``seen`` how many came to what."""
    strategy, check = target(name, folder)
    for number in range(first, first + -(-cases // ROUND)):

        @seed(number)
        @settings(
            max_examples=min(ROUND, cases - ROUND * (number - first)),
            database=None,
            deadline=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run(case: Any) -> None:
            if time.process_time() > until:
                return  # an exception would be a failure, and shrunk
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            faulthandler.dump_traceback_later(30 * MOST_SECONDS, exit=True)  # if it only waits
            seen[check(case)] += 1

        run()
        if time.process_time() > until:
            return


def child(options: argparse.Namespace) -> int:
    """Fuzz one target, and print what was seen as the last line."""
    (name,) = options.targets
    if not options.sanitized:  # whose shadow memory has no bound
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    folder = Path(options.folder)
    faulthandler.register(signal.SIGPROF, chain=True)  # which ends the process
    until = options.seconds
    seen: Counter[str] = Counter()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            fuzz(name, options.seed + 1_000_000 * number, options.cases, until, folder, seen)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, options.threads)]
    for thread in threads:
        thread.start()
    try:
        work(0)  # in the main thread, which can be stopped by a signal
    finally:
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(seen))
    return bool(failures)


def timed(command: Sequence[str]) -> tuple[int, str, float]:
    """Run a command: its exit status, what it printed, and the processor's seconds."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, usage.ru_utime + usage.ru_stime


def parent(name: str, options: argparse.Namespace) -> page.Entry:
    """Fuzz one target in child processes, a new one after each failure, until the time is over."""
    seconds, failures, number = 0.0, 0, options.seed
    seen: Counter[str] = Counter()
    while True:
        folder = options.keep / f"{name}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        left = options.seconds - seconds
        command = [sys.executable, "-m", "tests.fuzz", name, "--child", f"--folder={folder}"]
        command += [f"--seed={number}", f"--cases={options.cases}", f"--seconds={left}"]
        command += [f"--threads={options.threads}", f"--sanitized={options.sanitized}"]
        status, output, used = timed(command)
        seconds += used
        *said, last = output.splitlines() or [""]
        print("\n".join(said), end="\n" * bool(said))
        if last.startswith("{"):
            seen.update(json.loads(last))
        if status == 0:
            shutil.rmtree(folder)
            break
        failures += 1
        print(f"{name}: failed with status {status}, seed {number}; see {folder}")
        number += 100_000
        if options.cases < sys.maxsize or seconds > options.seconds:
            break
    entry = page.Entry.now(name, options.sanitized, options.threads, seen, round(seconds), failures)
    print(f"{name}: {entry.cases} cases in {seconds:.0f} s, {failures} failures; {dict(seen)}")
    return entry


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*page.TARGETS, []])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--threads", type=int, default=1, help="how many ask for splits at once")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where failures stay")
    parser.add_argument("--record", action="store_true", help="add the run to docs/reliability.md")
    parser.add_argument("--sanitized", default="", help="the sanitizer that the kernel is under")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(options)
    with ThreadPoolExecutor() as pool:
        entries = list(pool.map(lambda n: parent(n, options), options.targets or page.TARGETS))
    if options.record:
        page.add(entries)
    return any(entry.failures for entry in entries)


if __name__ == "__main__":
    sys.exit(main())
