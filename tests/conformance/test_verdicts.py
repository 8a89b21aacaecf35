"""Verdicts: bits decide, and with them shapes, element types and the kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from tensorsplit.conformance import verdicts
from tensorsplit.conformance.case import Built
from tensorsplit.conformance.document import Result
from tensorsplit.conformance.subjects import Traits, run_model
from tensorsplit.core.errors import SplitError
from tensorsplit.engines.process import Death, Reply
from tests.conformance.fakes import case


def run_here(model: bytes, inputs: Mapping[str, Any]) -> Reply:
    try:
        return Reply(run_model(model, inputs))
    except SplitError as error:
        return Reply(error=error)


TRAITS = {
    "engine": Traits(packages=()),
    "tool": Traits(packages=(), kind="tool"),
    "inference": Traits(packages=(), kind="tool", states_shapes=True),
}


def judge(name: str, subject: str, built: Built, reply: Reply) -> Result:
    """The verdict on a case with an engine, a tool, or a tool that states shapes."""
    return verdicts.judge(case(name), subject, TRAITS[subject], built, reply, execute=run_here)


DATA = np.arange(1, 7, dtype=np.float32)


def built(expected: Any = None, data: Any = DATA) -> Built:
    return Built(b"", b"", {"x": data}, ("y",), None if expected is None else {"y": expected})


def verdict(expected: Any, seen: Any, data: Any = DATA) -> Result:
    reply = Reply({"y": seen})
    return judge("case", "engine", built(expected, data), reply)


def strings(*items: str) -> Any:
    return np.array(items, dtype=object)


NAN = np.array([0x7FC00000], np.uint32).view(np.float32)
NAN_WITH_PAYLOAD = np.array([0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("expected", "seen"),
    [
        (DATA, DATA.copy()),
        (NAN_WITH_PAYLOAD, NAN_WITH_PAYLOAD.copy()),
        (strings("a", ""), np.array(["a", ""])),
        ([DATA, DATA[:0]], [DATA, DATA[:0]]),
        (DATA.astype(ml_dtypes.bfloat16), DATA.astype(ml_dtypes.bfloat16)),
    ],
)
def test_the_same_bits_pass(expected: Any, seen: Any) -> None:
    assert verdict(expected, seen) == Result("case", "engine", "pass")


@pytest.mark.parametrize(
    ("expected", "seen", "detail"),
    [
        (NAN, NAN_WITH_PAYLOAD, "1 value differs"),
        (np.zeros(1, np.float32), -np.zeros(1, np.float32), "the first is -0.0, not 0.0"),
        (strings("a", "b"), strings("a", "c"), "the first is 'c', not 'b'"),
        (DATA, DATA.astype(np.float64), "element type double, not float"),
        (DATA, DATA.reshape(1, 6), "shape (1, 6), not (6,)"),
        ([DATA], DATA, "kind a tensor, not a sequence"),
        ([DATA, DATA], [DATA], "length 1, not 2"),
        (DATA, None, "an empty optional"),
        (DATA, np.zeros(6, [("part", "f4")]), ""),
    ],
)
def test_anything_else_is_wrong(expected: Any, seen: Any, detail: str) -> None:
    found = verdict(expected, seen)
    assert found.verdict == "wrong"
    assert detail in found.detail


def test_the_first_difference_is_shown_with_both_values() -> None:
    seen = np.array([[1, 2, 9], [8, 5, 6]], np.int64)
    found = verdict(np.array([[1, 2, 3], [4, 5, 6]], np.int64), seen)
    assert (found.output, found.index) == ("y", (0, 2))
    assert (found.expected, found.seen) == ("3", "9")


def test_a_difference_in_a_sequence_names_the_position() -> None:
    assert verdict([DATA, DATA], [DATA, DATA + 1]).output == "y[1]"


def test_an_output_under_another_name_is_missing() -> None:
    reply = Reply({"z": DATA})
    found = judge("case", "engine", built(DATA), reply)
    assert (found.verdict, found.output) == ("wrong", "y")


def test_a_refusal_that_the_standard_asks_for_passes() -> None:
    reply = Reply(refusal="no")
    assert judge("case", "engine", built(), reply).verdict == "pass"


@pytest.mark.parametrize(("expected", "word"), [(None, "accepted-but-illegal"), (DATA, "wrong")])
def test_no_result_is_never_a_pass(expected: Any, word: str) -> None:
    assert judge("case", "engine", built(expected), Reply()).verdict == word


@pytest.mark.parametrize(
    ("name", "word"), [("a/refuse-sum", "untested"), ("a/refuse-type-o1", "pass")]
)
def test_a_refusal_for_want_of_a_type_is_a_pass_only_where_the_type_is_wrong(
    name: str, word: str
) -> None:
    reply = Reply(refusal="no such type", unsupported=True)
    found = judge(name, "engine", built(), reply)
    assert found.verdict == word
    assert not found.is_deviation


@pytest.mark.parametrize(
    ("unsupported", "word"), [(False, "refused-but-legal"), (True, "unsupported-type")]
)
def test_another_refusal_is_told_in_the_engines_words(unsupported: bool, word: str) -> None:
    reply = Reply(refusal="no kernel", unsupported=unsupported)
    found = judge("case", "engine", built(DATA), reply)
    assert (found.verdict, found.detail) == (word, "no kernel")


def test_what_comes_of_an_illegal_model_is_described() -> None:
    found = verdict(None, [DATA[:2], DATA[2:]])
    assert found.verdict == "accepted-but-illegal"
    assert "y a sequence of 2 (float32 [2], float32 [4])" in found.detail


def test_an_element_that_is_nowhere_in_the_data_was_read_from_outside() -> None:
    found = verdict(None, np.append(DATA, np.float32(77)))
    assert found.memory
    assert found.outcome.severity == 0


def test_elements_that_come_out_twice_were_not_read_from_outside() -> None:
    assert not verdict(None, np.append(DATA, DATA[:1])).memory


def test_an_output_as_large_as_it_should_be_was_not_read_from_outside() -> None:
    assert not verdict(DATA, DATA + 50).memory


@pytest.mark.parametrize(
    ("death", "word", "name", "memory"),
    [
        (Death(-8), "crash", "SIGFPE", False),
        (Death(-11), "crash", "SIGSEGV", True),
        (Death(-6, "malloc(): corrupted top size"), "crash", "SIGABRT", True),
        (Death(-6, "terminate called"), "crash", "SIGABRT", False),
        (Death(3), "crash", "", False),
        (Death(None, "", 10.0), "hang", "", False),
    ],
)
def test_a_death_is_a_verdict(death: Death, word: str, name: str, memory: bool) -> None:
    for asked in (built(DATA), built()):
        found = judge("case", "engine", asked, Reply(death=death))
        assert (found.verdict, found.signal, found.memory) == (word, name, memory)


def test_the_worst_verdict_comes_first() -> None:
    found = [
        Result("c", "e", "pass"),
        Result("c", "e", "unsupported-type"),
        Result("c", "e", "refused-but-legal"),
        Result("c", "e", "hang"),
        Result("c", "e", "lost-refusal"),
        Result("c", "e", "accepted-but-illegal"),
        Result("c", "e", "wrong"),
        Result("c", "e", "crash"),
        Result("c", "e", "wrong", memory=True),
    ]
    assert sorted(found, key=lambda entry: entry.outcome.severity) == found[::-1]


SPLIT = """<ir_version: 10, opset_import: ["": 18]>
g (float[N] x) => (float[A] a, float[B] b) <int64[2] s = {2, 4}> { a, b = %s }"""
RIGHT, CLIPPED, FAILS = "Split(x, s)", "Split<num_outputs=2>(x)", "Unknown(x)"
SLICED = """<ir_version: 10, opset_import: ["": 18]>
g (float[N] x) => (float[A] a, float[B] b)
<int64[1] zero = {0}, int64[1] two = {2}, int64[1] end = {9}>
{ a = Slice(x, zero, two) b = Slice(x, two, end) }"""
"""What gives the parts of 6 elements, and of 7 as well."""


def fed() -> Built:
    """A split of 6 elements that is fed 7."""
    parts = {"a": DATA[:2], "b": DATA[2:]}
    inputs = {"x": np.append(DATA, DATA[:1])}
    return Built(b"", b"", inputs, ("a", "b"), None, ({"x": DATA}, parts))


def of_tool(asked: Built, text: str, subject: str = "tool") -> Result:
    return judge("case", subject, asked, Reply(parse_model(text).SerializeToString()))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (SPLIT % RIGHT, "pass"),
        (SLICED, "lost-refusal"),
        (SPLIT % CLIPPED, "wrong"),
        (SPLIT % FAILS, "wrong"),
    ],
)
def test_a_rewritten_model_must_still_refuse_illegal_data(text: str, word: str) -> None:
    found = of_tool(fed(), text)
    assert (found.verdict, found.memory) == (word, False)
    if word == "lost-refusal":
        assert "the model that it returns gives a float32 [2], b float32 [5]" in found.detail


def test_a_rewriting_of_an_illegal_model_that_runs_is_a_lost_refusal() -> None:
    assert of_tool(built(), SLICED).verdict == "lost-refusal"


@pytest.mark.parametrize(("lacks", "word"), [(False, "refused-but-legal"), (True, "untested")])
def test_a_tool_may_not_refuse_a_model_for_what_may_be_fed(lacks: bool, word: str) -> None:
    reply = Reply(refusal="no", unsupported=lacks)
    assert judge("case", "tool", fed(), reply).verdict == word
    assert judge("case", "engine", fed(), Reply(refusal="no")).verdict == "pass"


def test_a_target_that_cant_say_a_model_is_no_deviation_of_the_tool() -> None:
    reply = Reply(refusal="not expressible", unsupported=True)
    assert judge("case", "tool", built(DATA), reply).verdict == "untested"


def test_shapes_that_hold_for_legal_data_may_be_stated() -> None:
    text = SPLIT.replace("A]", "2]").replace("B]", "4]") % RIGHT
    assert of_tool(fed(), text, "inference").verdict == "pass"
    text = SPLIT.replace("A]", "3]") % RIGHT
    assert of_tool(fed(), text, "inference").verdict == "wrong"


def test_stating_the_shape_of_a_scalar_accepts_what_is_illegal() -> None:
    scalar = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [])
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [scalar]))
    reply = Reply(proto.SerializeToString())
    found = judge("case", "inference", built(), reply)
    assert found.verdict == "accepted-but-illegal"
    assert found.detail.endswith("states the shape of y []")


def test_stating_a_type_that_there_is_not_is_wrong() -> None:
    y = onnx.helper.make_tensor_value_info("y", 99, [6])
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [y]))
    reply = Reply(proto.SerializeToString())
    found = judge("case", "inference", built(DATA), reply)
    assert found.detail == "output y: it states element type number 99, not float"
