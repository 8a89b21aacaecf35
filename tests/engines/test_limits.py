"""`run` within limits: the run is in a child process of any engine, and is ended beyond them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tensorsplit as ts
from tensorsplit.engines.process import TIMEOUT_VARIABLE, EngineProcess, Reply
from tests.engines.models import FLOAT, INT64, model, node, split_model, tensor
from tests.engines.test_run import every_engine
from tests.interpreters import printed
from tests.model.ir_files import X, cut_file

DATA = np.arange(6, dtype=np.float32)
GIB = 1 << 30

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")


def filled() -> onnx.ModelProto:
    """As many zeros as are fed, split and summed up."""
    nodes = [
        node("ConstantOfShape", "n", "zeros"),
        node("Split", "zeros", "a b", num_outputs=2),
        node("ReduceSum", "a", "sum", keepdims=0),
    ]
    return model(nodes, [tensor("n", INT64, [1])], [tensor("sum")])


def counting() -> onnx.ModelProto:
    """A loop that adds 1 as often as it is fed, beside a split."""
    condition = tensor("condition", TensorProto.BOOL, []), tensor("goes on", TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["condition"], ["goes on"]),
            node("Constant", "", "one", value_float=1.0),
            node("Add", "sum one", "more"),
        ],
        "body",
        [tensor("i", INT64, []), condition[0], tensor("sum", FLOAT, [])],
        [condition[1], tensor("more", FLOAT, [])],
    )
    nodes = [
        helper.make_node("Loop", ["times", "go", "start"], ["end"], body=body),
        node("Split", "x", "a b", num_outputs=2),
    ]
    fed = [tensor("times", INT64, []), tensor("x", FLOAT, [6])]
    made = [tensor("end"), tensor("a"), tensor("b")]
    return model(nodes, fed, made, go=np.array(True), start=np.array(0, np.float32))


def refused(code: str, source: Any, inputs: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ts.SplitError) as caught:
        ts.run(source, inputs, **options)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def test_what_importing_an_engine_takes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    ask = EngineProcess.ask

    def noted(process: EngineProcess, request: Any, seconds: float, **options: Any) -> Reply:
        given.append(seconds)
        return ask(process, request, seconds, **options)

    monkeypatch.setattr(EngineProcess, "ask", noted)
    monkeypatch.setenv(TIMEOUT_VARIABLE, "90")
    made = ts.run(split_model(), {"x": DATA}, timeout=50)
    np.testing.assert_array_equal(made["b"], DATA[2:])
    assert given[0] == 90  # what it usually has
    assert set(given[1:]) == {50}


@needs_linux
def test_limits_may_be_numbers_of_numpy() -> None:
    limits: Any = {"memory": np.int64(4 * GIB), "timeout": np.float32(100)}
    made = ts.run(split_model(), {"x": DATA}, **limits)
    np.testing.assert_array_equal(made["b"], DATA[2:])
    refused("TS605", counting(), {"times": np.array(10**8), "x": DATA}, timeout=np.int64(1))


@needs_linux
@every_engine
def test_what_stays_within_its_limits_is_as_ever(engine: Any, tmp_path: Path) -> None:
    onnx.save(split_model(), tmp_path / "m.onnx")
    for source, limit in ((split_model(), 4 * GIB), (tmp_path / "m.onnx", 1 << 90)):
        made = ts.run(source, {"x": DATA}, engine=engine, memory=limit, timeout=100)
        assert list(made) == ["a", "b"]
        np.testing.assert_array_equal(made["b"], DATA[2:])


@needs_linux
@every_engine
def test_memory_beyond_the_limit(engine: Any) -> None:
    fed = {"n": np.array([1 << 30], np.int64)}
    message = refused("TS605", filled(), fed, engine=engine, memory=GIB)
    assert "the 1 GiB that --memory allows (" in message
    assert "allocate 4" in message or "size 4294967296" in message, "what the engine says of it"
    assert "--memory" in message


@every_engine
def test_time_beyond_the_limit(engine: Any) -> None:
    fed = {"times": np.array(10**8, np.int64), "x": DATA}
    message = refused("TS605", counting(), fed, engine=engine, timeout=0.5)
    assert "0.5 s" in message
    assert "--timeout" in message


@needs_linux
def test_what_takes_too_long_is_not_told_to_need_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, "2")
    fed = {"times": np.array(10**8, np.int64), "x": DATA}
    assert "2 s" in refused("TS604", counting(), fed, engine="onnx-reference", memory=4 * GIB)


def test_refusals_are_as_ever() -> None:
    assert "x" in refused("TS505", split_model(), {}, timeout=100)
    assert "sums to 7" in refused("TS302", split_model(3, 4), {"x": DATA}, timeout=100)


def test_sequences_and_strings_are_passed_on() -> None:
    source = model(
        [node("SplitToSequence", "x split", "parts")],
        [tensor("x", TensorProto.STRING, [2])],
        [helper.make_tensor_sequence_value_info("parts", TensorProto.STRING, None)],
        split=np.array(1, np.int64),
    )
    texts = np.array(["a", "\N{SNOWMAN}"], object)
    made = ts.run(source, {"x": texts}, timeout=100)["parts"]
    assert [part.tolist() for part in made] == [["a"], ["\N{SNOWMAN}"]]


def test_an_openvino_ir(tmp_path: Path) -> None:
    path = cut_file().save(tmp_path)
    expected = ts.run(path, {"x": X}, engine="tensorsplit")
    made = ts.run(path, {"x": X}, engine="tensorsplit", timeout=100)
    assert list(made) == list(expected)
    for name, part in made.items():
        np.testing.assert_array_equal(part, expected[name])


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1"])
def test_what_is_no_amount_of_memory(limit: Any) -> None:
    assert "memory" in refused("TS703", split_model(), {"x": DATA}, memory=limit)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1"])
def test_what_is_no_time(limit: Any) -> None:
    assert "timeout" in refused("TS703", split_model(), {"x": DATA}, timeout=limit)


@pytest.mark.parametrize("limit", [1, GIB])
def test_a_system_that_limits_no_memory(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    message = refused("TS703", split_model(), {"x": DATA}, memory=limit)
    assert "darwin limits the address space of no process (RLIMIT_AS)" in message


def interrupt_thread() -> None:
    """Send the signal to a thread that is not the one that waits, as a system may."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def interrupt_process() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals here")
@pytest.mark.parametrize("interrupt", [interrupt_process, interrupt_thread])
def test_ctrl_c_ends_the_child(interrupt: Callable[[], None]) -> None:
    threading.Timer(1, interrupt).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ts.run(counting(), {"times": np.array(10**8, np.int64), "x": DATA}, timeout=100)
    assert time.monotonic() - begun < 50  # neither ran to its end nor to its deadline


@needs_linux
def test_a_process_is_limited_once() -> None:
    """What earlier runs took would be allowed again otherwise."""
    program = """
        import resource
        from tensorsplit.engines.limits import begin
        begin("json", 1 << 28)
        first = resource.getrlimit(resource.RLIMIT_AS)
        held = bytearray(1 << 26)
        begin("json", 1 << 28)
        print(first == resource.getrlimit(resource.RLIMIT_AS), first[0] > 0)
    """
    assert printed(program).split() == ["True", "True"]
