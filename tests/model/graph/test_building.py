"""Full collections wait while graphs are built, and only then; the collector stays switched on."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import onnx_ir as ir
import pytest

from tensorsplit import infer_shapes
from tensorsplit.model.graph.building import Edits, full_collections_deferred
from tests.model.build import FLOAT, graph, model, node, value
from tests.refusals import refused

THRESHOLD = (300, 7, 9)


class Ring:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def is_deferred() -> bool:
    assert gc.isenabled()
    return gc.get_threshold()[2] > 1 << 20


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLD)
    yield
    gc.set_threshold(*before)


def test_they_run_again_when_the_last_one_is_done() -> None:
    with full_collections_deferred():
        with full_collections_deferred():
            assert is_deferred()
        assert is_deferred()
    assert gc.get_threshold() == THRESHOLD


def test_they_run_again_after_a_refusal() -> None:
    made = node("Split", "x", "a b c", num_outputs=2)
    with refused("TS305"):
        infer_shapes(model(graph([made], [value("x", FLOAT, (6,))], ["a", "b", "c"])))
    assert gc.get_threshold() == THRESHOLD


def test_outputs_are_replaced_where_they_are_though_the_list_has_changed() -> None:
    body = ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] a, float[2] b)
        { a = Neg(x) b = Abs(x) c = Exp(x) d = Sin(x) e = Cos(x) }"""
    ).graph
    a, b, c, d, e = (made.outputs[0] for made in body)
    edits = Edits()
    edits.replace([(a, c)])
    body.outputs.insert(0, e)
    edits.replace([(b, d)])
    assert list(body.outputs) == [e, c, d]


def test_young_garbage_is_freed_meanwhile() -> None:
    with full_collections_deferred():
        dropped = weakref.ref(Ring())
        kept: list[list[int]] = [[] for _ in range(3 * THRESHOLD[0])]
        assert dropped() is None
    assert kept


def test_what_others_set_meanwhile_stays() -> None:
    with full_collections_deferred():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


def test_threads_do_not_bring_them_back_for_each_other() -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with full_collections_deferred():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    with full_collections_deferred():
        pass
    assert is_deferred()
    leave.set()
    thread.join()
    assert gc.get_threshold() == THRESHOLD
