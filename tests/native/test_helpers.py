"""Where the threads that help may work: beside the caller, and only where the caller may be."""

from __future__ import annotations

import os
import sys

import pytest

from tensorsplit import native
from tests.interpreters import printed

pytestmark = [
    pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets threads choose"),
]

PROGRAM = """
import os, threading, time
import numpy as np
from tensorsplit import native

kernel = native.kernel
kernel.use_non_temporal_from(1)
kernel.use_threads(THREADS)
ALL = os.sched_getaffinity(0)
x = np.random.default_rng(0).random((1500, 1000), np.float32)

def tasks():
    return {int(task) for task in os.listdir("/proc/self/task")}

def copy():
    left, right = kernel.copies(x, 1, (400, 600), True)
    assert (left == x[:, :400]).all() and (right == x[:, 400:]).all()

def processor():
    "Where this thread was last, which is where it is."
    with open("/proc/thread-self/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[36])

def masks():
    return [os.sched_getaffinity(helper) for helper in helpers]

def until(holds, what):
    "Copy until something holds, however busy the machine is."
    stop = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < stop, (what, processor(), os.sched_getaffinity(0), masks())
        time.sleep(0.01)

def are_beside():
    "Whether a copy, during which this thread stayed where it was, leaves all helpers beside it."
    allowed, before = os.sched_getaffinity(0), processor()
    copy()
    wanted = allowed - {before} or allowed
    if processor() != before:
        return False  # moved by the system: not known where the copy began
    return all(mask and mask <= wanted for mask in masks())

others = tasks()
copy()
helpers = tasks() - others
assert len(helpers) == THREADS - 1, helpers
until(are_beside, "at first")
"""


def run(program: str, threads: int = 2) -> None:
    """Run a program after a first copy by so many threads."""
    text = PROGRAM.replace("THREADS", str(threads)) + program + "\nprint('fine')\n"
    assert printed(text) == "fine\n"


def needs(processors: int) -> pytest.MarkDecorator:
    """What needs so many processors."""
    here = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    return pytest.mark.skipif(here < processors, reason=f"fewer than {processors} processors here")


@needs(2)
@pytest.mark.parametrize("threads", [2, 5])
def test_a_caller_that_moves(threads: int) -> None:
    run(
        """
for _ in range(3):
    for place in sorted(ALL):
        os.sched_setaffinity(0, {place})
        os.sched_setaffinity(0, ALL)
        until(are_beside, place)
""",
        threads,
    )


def test_the_caller_s_own_thread_stays_as_it_is() -> None:
    run(
        """
for allowed in (ALL, {min(ALL)}, ALL):
    os.sched_setaffinity(0, allowed)
    for _ in range(5):
        copy()
        assert os.sched_getaffinity(0) == allowed
thread = threading.Thread(target=copy)
thread.start()
thread.join()
assert os.sched_getaffinity(0) == ALL
"""
    )


@needs(2)
def test_fewer_processors_and_more_again() -> None:
    run(
        """
for allowed in ({min(ALL)}, {max(ALL)}, ALL, {max(ALL)}, ALL):
    os.sched_setaffinity(0, allowed)
    until(are_beside, allowed)
"""
    )


@needs(2)
def test_a_change_from_outside() -> None:
    """As by `taskset --all-tasks`, and of helpers alone."""
    run(
        """
def set_all(allowed):
    for task in tasks():
        os.sched_setaffinity(task, allowed)

for allowed in ({min(ALL)}, ALL, {max(ALL)}, ALL, ALL):
    set_all(allowed)
    until(are_beside, allowed)
for place in sorted(ALL) * 2:
    os.sched_setaffinity(0, {place})
    os.sched_setaffinity(0, ALL)
    until(are_beside, place)
    for helper in helpers:
        os.sched_setaffinity(helper, {processor()})
    until(are_beside, "helpers were put on the caller's processor")
"""
    )


@needs(2)
def test_one_processor_left_wakes_no_helper() -> None:
    run(
        """
def switches():
    found = []
    for helper in helpers:
        with open(f"/proc/self/task/{helper}/status", encoding="ascii") as file:
            found += [line for line in file if line.startswith("voluntary_ctxt_switches")]
    return found

os.sched_setaffinity(0, {min(ALL)})
copy()
while (before := switches()) != (time.sleep(0.2), switches())[1]:
    pass  # until they sleep
for _ in range(20):
    copy()
assert switches() == before
os.sched_setaffinity(0, ALL)
until(lambda: (copy(), switches() != before)[1], "they help again")
"""
    )


@needs(2)
def test_callers_with_processors_of_their_own() -> None:
    run(
        """
def work(allowed):
    os.sched_setaffinity(0, allowed)
    for _ in range(10):
        copy()
        assert os.sched_getaffinity(0) == allowed

threads = [threading.Thread(target=work, args=(each,)) for each in ({min(ALL)}, {max(ALL)}, ALL)]
for thread in threads: thread.start()
for thread in threads: thread.join()
until(are_beside, "afterwards")
"""
    )


@needs(2)
def test_a_child_of_fork() -> None:
    run(
        """
child = os.fork()
if child == 0:
    status = 1
    try:
        assert os.sched_getaffinity(0) == ALL
        others = tasks()
        until(lambda: (copy(), tasks() - others)[1], "a copy by two threads")  # may try one first
        helpers = tasks() - others
        assert len(helpers) == 1
        until(are_beside, "in the child")
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
until(are_beside, "in the parent")
"""
    )
