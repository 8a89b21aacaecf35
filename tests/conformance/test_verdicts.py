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
        (DATA, DATA + 1, "output y: 6 values differ; the first is 2.0, not 1.0"),
        (DATA[:2], DATA[:2] + 1, "output y: 2 values differ; the first is 2.0, not 1.0"),
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


@pytest.mark.parametrize(("length", "end"), [(2_000, "nn"), (2_001, "n...")])
def test_a_text_of_more_than_2000_characters_is_cut(length: int, end: str) -> None:
    found = judge("case", "engine", built(DATA), Reply(refusal="n" * length))
    assert found.detail.endswith(end)
    assert len(found.detail) == 2_000 + len("..." if length > 2_000 else "")


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


@pytest.mark.parametrize(
    ("count", "more"),
    [(0, "no outputs"), (6, ""), (7, ", and 1 more"), (9, ", and 3 more")],
)
def test_of_many_outputs_the_first_six_are_described(count: int, more: str) -> None:
    reply = Reply({f"y{number}": DATA for number in range(count)})
    found = judge("case", "engine", built(), reply)
    six = ", ".join(f"y{number} float32 [6]" for number in range(min(count, 6)))
    assert found.detail == f"it should refuse, but gives {six}{more}"


def test_an_element_that_is_nowhere_in_the_data_was_read_from_outside() -> None:
    found = verdict(None, np.append(DATA, np.float32(77)))
    assert found.memory
    assert found.outcome.severity == 0


def test_elements_that_come_out_twice_were_not_read_from_outside() -> None:
    assert not verdict(None, np.append(DATA, DATA[:1])).memory


def test_what_a_model_that_is_fed_nothing_gives_was_not_read_from_outside() -> None:
    """Its data is a constant in it, which nobody looks at."""
    case_of_constants = Built(b"", b"", {}, ("y",), None)
    assert not judge("case", "engine", case_of_constants, Reply({"y": DATA})).memory


def test_an_output_as_large_as_it_should_be_was_not_read_from_outside() -> None:
    assert not verdict(DATA, DATA + 50).memory
    assert not verdict(np.append(DATA, DATA), np.append(DATA, DATA) + 50).memory


@pytest.mark.parametrize(
    ("death", "word", "name", "memory"),
    [
        (Death(-8), "crash", "SIGFPE", False),
        (Death(-11), "crash", "SIGSEGV", True),
        (Death(-7), "crash", "SIGBUS", True),
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


@pytest.mark.parametrize("death", [Death(None, "half of it"), Death(None, most=1_000)])
@pytest.mark.parametrize(("expected", "word"), [(None, "accepted-but-illegal"), (DATA, "wrong")])
def test_an_answer_that_cannot_be_read_is_no_crash(death: Death, expected: Any, word: str) -> None:
    found = judge("case", "engine", built(expected), Reply(death=death))
    assert (found.verdict, found.signal, found.memory) == (word, "", False)
    assert "answer" in found.detail


def test_a_case_of_which_a_later_one_dies_has_changed_memory_that_is_not_its_own() -> None:
    reply = Reply(death=Death(-6, "terminate called"))
    found = verdicts.judge(
        case("case"),
        "engine",
        TRAITS["engine"],
        built(DATA),
        reply,
        execute=run_here,
        affected="a/later/case",
    )
    assert (found.verdict, found.memory) == ("crash", True)
    assert "while it ran a/later/case" in found.detail


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


def test_a_rewriting_of_which_our_own_engine_dies_is_wrong() -> None:
    reply = Reply(parse_model(SLICED).SerializeToString())
    found = verdicts.judge(
        case("case"),
        "tool",
        TRAITS["tool"],
        built(DATA),
        reply,
        execute=lambda *_: Reply(death=Death(-11)),
    )
    assert (found.verdict, found.memory) == ("wrong", False)
    assert "our own engine was ended by SIGSEGV" in found.detail


def test_elements_that_a_rewriting_adds_were_read_from_nowhere() -> None:
    """Our own engine runs it: that they are in no input is no error of memory."""
    text = """<ir_version: 10, opset_import: ["": 18]>
        g (float[N] x) => (float[M] y) { n = Neg(x) y = Concat<axis=0>(x, n) }"""
    found = of_tool(built(DATA), text)
    assert (found.verdict, found.memory) == ("wrong", False)
    assert found.detail == "its model is wrong: output y: shape (12,), not (6,)"


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


STATED: list[tuple[Any, list[int | str] | None, str]] = [
    (DATA, None, "pass"),
    (DATA, [6], "pass"),
    (DATA, ["N"], "pass"),
    (DATA, [5], "output y: it states shape [5], not [6]"),
    (DATA, [0], "output y: it states shape [0], not [6]"),
    (DATA, [], "output y: it states shape [], not [6]"),
    (DATA, [6, 1], "output y: it states shape [6, 1], not [6]"),
    (DATA, ["N", "M"], "output y: it states shape [?, ?], not [6]"),
    (DATA[:0], [0], "pass"),
    (DATA[:0], [1], "output y: it states shape [1], not [0]"),
    (DATA.astype(np.float64), [6], "output y: it states element type float, not double"),
    (None, None, "pass"),
    (None, ["N"], "pass"),
    (None, [2, "N"], "pass"),
    (None, [2], "it should refuse, but states the shape of y [2]"),
]


@pytest.mark.parametrize(("expected", "dims", "found"), STATED)
@pytest.mark.parametrize("is_sequence", [False, True])
def test_a_shape_that_is_stated_holds_for_the_output(
    expected: Any, dims: list[int | str] | None, found: str, is_sequence: bool
) -> None:
    make = onnx.helper
    y = make.make_tensor_type_proto(onnx.TensorProto.FLOAT, dims)
    if is_sequence:
        y, expected = make.make_sequence_type_proto(y), None if expected is None else [expected]
    output = make.make_value_info("y", y)
    proto = make.make_model(make.make_graph([], "g", [], [output]))
    result = judge("case", "inference", built(expected), Reply(proto.SerializeToString()))
    assert (result.detail or result.verdict) == found


def test_nothing_stated_is_nothing_wrong() -> None:
    proto = onnx.helper.make_model(
        onnx.helper.make_graph([], "g", [], [onnx.ValueInfoProto(name="y")])
    )
    reply = Reply(proto.SerializeToString())
    assert judge("case", "inference", built(DATA), reply).verdict == "pass"


def test_what_is_to_be_inferred_is_not_declared() -> None:
    text = """<ir_version: 10, opset_import: ["": 18]>
        g (float[6] x) => (float[6] y, seq(float[2]) s, optional(float[6]) o) <float[6] h>
        { h = Neg(x) y = Neg(h) s = SequenceConstruct(y) o = Optional(y) }"""
    before = parse_model(text)
    assert len(before.graph.value_info) == 1
    after = onnx.load_from_string(verdicts.undeclared(before.SerializeToString()))
    y, s, o = (output.type for output in after.graph.output)
    assert not after.graph.value_info
    optional = o.optional_type.elem_type.tensor_type
    for held in (y.tensor_type, s.sequence_type.elem_type.tensor_type, optional):
        assert held.elem_type == onnx.TensorProto.FLOAT
        assert not held.HasField("shape")
    assert after.graph.input == before.graph.input


def test_stating_a_type_that_there_is_not_is_wrong() -> None:
    y = onnx.helper.make_tensor_value_info("y", 99, [6])
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [y]))
    reply = Reply(proto.SerializeToString())
    found = judge("case", "inference", built(DATA), reply)
    assert found.detail == "output y: it states element type number 99, not float"
