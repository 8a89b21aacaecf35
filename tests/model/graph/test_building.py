"""The garbage collector is paused while graphs are built, and only then."""

from __future__ import annotations

import gc
import threading

import pytest

from tensorsplit import infer_shapes
from tensorsplit.model.graph.building import collector_paused
from tests.model.build import FLOAT, graph, model, node, value
from tests.refusals import refused


def test_it_runs_again_when_the_last_one_is_done() -> None:
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_runs_again_after_a_refusal() -> None:
    made = node("Split", "x", "a b c", num_outputs=2)
    with refused("TS305"):
        infer_shapes(model(graph([made], [value("x", FLOAT, (6,))], ["a", "b", "c"])))
    assert gc.isenabled()


def test_it_stays_off_for_those_who_switched_it_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_do_not_switch_it_on_for_each_other() -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with collector_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    with collector_paused():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.fixture(autouse=True)
def _enabled() -> None:
    assert gc.isenabled()
