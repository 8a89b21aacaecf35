"""What is illegal only at run time stays refused on real engines, converted and lowered (D21).

What must come out, or be refused, is stated here by hand for each kind of lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess
from tensorsplit.model.lower import lower_graph
from tests.model.build import onnx_model
from tests.refusals import refused

pytestmark = pytest.mark.engine

Array: TypeAlias = "np.ndarray[Any, Any]"
Outcome: TypeAlias = "list[Any] | str"

ENGINES = ("onnxruntime", "openvino")
RUN_BY = {
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "portable": ("onnxruntime", "openvino", "onnx-reference"),
}
"""The engines by which a model lowered for a target must be refused."""

OPSETS = (10, 11, 13, 18, 21)
DTYPES = {"float": np.float32, "int64": np.int64, "string": np.object_}


@dataclass(frozen=True)
class Fed:
    """Data with what is expected of it.

    Attributes:
        dim: The length of the axis.
        sizes: The lengths of the parts; None where the standard refuses.
        feeds: What is fed beside the data.
    """

    dim: int
    sizes: tuple[int, ...] | None
    feeds: dict[str, Array] = field(default_factory=dict)


def parts_themselves(parts: list[Array], _fed: Fed, _axis: int) -> list[Array]:
    return parts


@dataclass(frozen=True)
class Family:
    """A split whose dimension, or whose lengths, are told at run time.

    Attributes:
        name: For messages.
        opset: The opset of the model.
        body: The nodes, with ``AXIS`` for the axis and the data ``x``.
        outputs: The outputs, separated by blanks.
        fed: What the model is run with.
        inputs: The inputs beside the data, and initializers.
        expected: What comes out where nothing is refused.
        shapes: The declared shape of outputs, where it is not that of the data.
    """

    name: str
    opset: int
    body: str
    outputs: str
    fed: tuple[Fed, ...]
    inputs: str = ""
    initializers: str = ""
    expected: Callable[[list[Array], Fed, int], list[Array]] = parts_themselves

    def model(self, axis: int, rank: int, element: str) -> onnx.ModelProto:
        """The nodes in a model, on an axis of unknown length."""
        shape, fresh = ["M"] * rank, iter("ABCDEFGHIJKLOPQRST")
        shape[axis] = "N"
        declared = [
            f"int64 {name}"
            if name == "n"
            else f"{element}[{', '.join(next(fresh) for _ in shape)}] {name}"
            for name in self.outputs.split()
        ]
        given = f", {self.inputs}" if self.inputs else ""
        text = (
            f'<ir_version: 8, opset_import: ["" : {self.opset}, "org.openvinotoolkit" : 1]>'
            f" g ({element}[{', '.join(shape)}] x{given}) => ({', '.join(declared)})"
            f" <{self.initializers}> {{ {self.body} }}"
        ).replace("AXIS", str(axis))
        model = parse_model(text.replace("<>", ""))
        if "openvino" not in self.body:
            del model.opset_import[1:]
        return model

    def cases(
        self, axis: int, rank: int, element: str, others: int
    ) -> Iterator[tuple[dict[str, Array], list[Array] | None]]:
        """What to feed, and what must come out; None where it must be refused."""
        for fed in self.fed:
            shape = [others] * rank
            shape[axis] = fed.dim
            data: Array = (
                np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(DTYPES[element])
            )
            if element == "string":
                data = data.astype(str).astype(object)
            wanted = None
            if fed.sizes is not None:
                ends = np.cumsum([0, *fed.sizes])
                parts = [
                    np.take(data, range(*ends[n : n + 2]), axis) for n in range(len(fed.sizes))
                ]
                wanted = self.expected(parts, fed, axis)
            yield {"x": data, **fed.feeds}, wanted


Case: TypeAlias = "tuple[dict[str, Array], list[Array] | None]"


def with_right_ones(cases: Iterator[Case]) -> list[Case]:
    """Each case that is refused between two runs of what is right, for the model has to go on."""
    listed = list(cases)
    right = next(case for case in listed if case[1] is not None)
    return [each for case in listed for each in ([case] if case[1] else [right, case, right])]


def dims(sizes: dict[int, tuple[int, ...] | None]) -> tuple[Fed, ...]:
    """Data of each length."""
    return tuple(Fed(dim, parts) for dim, parts in sizes.items())


def lengths(
    legal: Mapping[Any, tuple[int, ...]], illegal: Sequence[tuple[int, ...]]
) -> tuple[Fed, ...]:
    """Data of length 6 with the lengths ``l``."""
    fed = [Fed(6, sizes, {"l": np.array(given)}) for given, sizes in legal.items()]
    fed += [Fed(6, None, {"l": np.array(given, np.int64)}) for given in illegal]
    return tuple(fed)


def retyped(fed: tuple[Fed, ...], dtype: Any) -> tuple[Fed, ...]:
    return tuple(Fed(f.dim, f.sizes, {**f.feeds, "l": f.feeds["l"].astype(dtype)}) for f in fed)


RIGHT: dict[Any, tuple[int, ...]] = {(2, 4): (2, 4), (6, 0): (6, 0), (0, 6): (0, 6), (3, 3): (3, 3)}
WRONG = [(-1, 7), (7, -1), (2, 3), (2, 5), (-6, 12), (0, 0), (-1, -1), (6, 6), (-2, 8), (-1, 6)]
LISTS = lengths(RIGHT, WRONG)
ANY_LISTS = (*LISTS, *lengths({}, [(6,), (2, 2, 2), (2, 4, 0), ()]), *lengths(RIGHT, []))
OPEN = lengths(
    {**RIGHT, (-1, 2): (4, 2), (6, -1): (6, 0), (-1, 0): (6, 0)},
    [(2, 3), (7, 0), (-2, 8), (-1, 7), (7, -1), (-1, -1), (8, -2), (-1, -2), (0, 0)],
)
GIVEN = dims({6: (2, 4), 5: None, 7: None, 0: None})
REST = dims({6: (4, 2), 2: (0, 2), 1: None, 0: None})
CEIL_2 = dims({0: (0, 0), 1: (1, 0), 5: (3, 2), 6: (3, 3)})
CEIL_4 = dims(
    {0: (0,) * 4, 1: None, 2: None, 3: (1, 1, 1, 0), 5: None, 6: (2, 2, 2, 0), 7: (2, 2, 2, 1)}
)
EQUAL_2 = dims({0: (0, 0), 1: None, 5: None, 6: (3, 3)})
EQUAL_3 = dims({0: (0,) * 3, 1: None, 2: None, 5: None, 6: (2, 2, 2)})

VARIADIC = "a, b = org.openvinotoolkit.VariadicSplit(x, axis, l)"
FAMILIES = (
    Family("ceil of 2", 18, "a, b = Split<axis=AXIS, num_outputs=2>(x)", "a b", CEIL_2),
    Family("ceil of 4", 18, "a, b, c, d = Split<axis=AXIS, num_outputs=4>(x)", "a b c d", CEIL_4),
    Family("equal 2 at 10", 10, "a, b = Split<axis=AXIS>(x)", "a b", EQUAL_2),
    Family("equal 3 at 11", 11, "a, b, c = Split<axis=AXIS>(x)", "a b c", EQUAL_3),
    Family("equal 2 at 13", 13, "a, b = Split<axis=AXIS>(x)", "a b", EQUAL_2),
    Family("equal 3 at 13", 13, "a, b, c = Split<axis=AXIS>(x)", "a b c", EQUAL_3),
    Family("attribute at 10", 10, "a, b = Split<axis=AXIS, split=[2, 4]>(x)", "a b", GIVEN),
    Family("attribute at 11", 11, "a, b = Split<axis=AXIS, split=[2, 4]>(x)", "a b", GIVEN),
    Family(
        *("constant at 13", 13, "a, b = Split<axis=AXIS>(x, l)", "a b", GIVEN),
        initializers="int64[2] l = {2, 4}",
    ),
    Family("lists at 13", 13, "a, b = Split<axis=AXIS>(x, l)", "a b", LISTS, "int64[2] l"),
    Family("lists at 18", 18, "a, b = Split<axis=AXIS>(x, l)", "a b", LISTS, "int64[2] l"),
    Family("any lists", 13, "a, b = Split<axis=AXIS>(x, l)", "a b", ANY_LISTS, "int64[L] l"),
    Family("variadic", 13, VARIADIC, "a b", OPEN, "int64[2] l", "int64 axis = {AXIS}"),
    Family(
        *("variadic int32", 18, VARIADIC, "a b", retyped(OPEN, np.int32), "int32[2] l"),
        initializers="int64 axis = {AXIS}",
    ),
    Family(
        *("variadic constant", 13, VARIADIC, "a b", REST),
        initializers="int64 axis = {AXIS}, int64[2] l = {-1, 2}",
    ),
)


def at(parts: list[Array], fed: Fed, _axis: int) -> list[Array]:
    return [parts[fed.feeds["i"].item()]]


def count(parts: list[Array], _fed: Fed, _axis: int) -> list[Array]:
    return [np.array(len(parts))]


def three_times(parts: list[Array], _fed: Fed, _axis: int) -> list[Array]:
    return [np.array(3 * len(parts))]


def joined(parts: list[Array], _fed: Fed, axis: int) -> list[Array]:
    return [np.concatenate(parts, axis)]


def erased(parts: list[Array], fed: Fed, axis: int) -> list[Array]:
    index = fed.feeds["i"].item() % len(parts)
    return [np.concatenate(parts[:index] + parts[index + 1 :], axis)]


def one_more(parts: list[Array], _fed: Fed, _axis: int) -> list[Array]:
    return [np.array(len(parts) + 1)]


def twice(parts: list[Array], _fed: Fed, axis: int) -> list[Array]:
    return [np.concatenate([*parts, *parts], axis)]


def positions(fed: tuple[Fed, ...]) -> Iterator[Fed]:
    """Each data with positions, some of which are out of range (D19)."""
    for each in fed:
        parts = len(each.sizes or ())
        for index in {-parts - 1, -parts, -1, 0, parts - 1, parts}:
            inside = each.sizes is not None and -parts <= index < parts
            yield Fed(
                each.dim, each.sizes if inside else None, {**each.feeds, "i": np.array(index)}
            )


CHUNKS = tuple(
    Fed(dim, sizes, {"l": np.array(chunk)})
    for dim, chunk, sizes in (
        *((6, 2, (2, 2, 2)), (5, 2, (2, 2, 1)), (5, 9, (5,)), (5, 5, (5,)), (5, 1, (1,) * 5)),
        *((5, 0, None), (5, -1, None), (5, -9, None), (0, 0, None)),
    )
)
ANY_LISTS_OF_SEQUENCE = lengths(
    {(2, 4): (2, 4), (6,): (6,), (1, 2, 3): (1, 2, 3), (0, 6): (0, 6)},
    [(-1, 7), (7, -1), (2, 3), (2, 5), (-6, 12), (0, 0), (6, 6), (5,), (7,)],
)
SPLIT = "s = SplitToSequence<axis=AXIS>(x, l)"
USES = {
    "at": (f"{SPLIT} a = SequenceAt(s, i)", "a", at),
    "length": (f"{SPLIT} n = SequenceLength(s)", "n", count),
    "joined": (f"{SPLIT} a = ConcatFromSequence<axis=AXIS>(s)", "a", joined),
}


def sequences() -> Iterator[Family]:
    kinds = {"chunks": (CHUNKS, "int64 l"), "lists": (ANY_LISTS_OF_SEQUENCE, "int64[L] l")}
    for kind, (fed, given) in kinds.items():
        for use, (body, outputs, expected) in USES.items():
            is_at = use == "at"
            yield Family(
                *(f"{kind} {use}", 13, body, outputs),
                tuple(positions(fed)) if is_at else fed,
                f"{given}, int64 i" if is_at else given,
                expected=expected,
            )
    for use, (body, outputs, expected) in USES.items():
        fed = tuple(positions(GIVEN)) if use == "at" else GIVEN
        yield Family(
            *(f"constant list {use}", 24, body, outputs, fed, "int64 i" if use == "at" else ""),
            initializers="int64[2] l = {2, 4}",
            expected=expected,
        )
    same = tuple(positions(dims({6: (3, 3), 5: None, 0: None})))
    yield Family(
        *("equal constants at", 18, USES["at"][0], "a", same, "int64 i"),
        initializers="int64[2] l = {3, 3}",
        expected=at,
    )
    yield Family(
        *(
            "constants of 0 at",
            11,
            USES["at"][0],
            "a",
            tuple(positions(dims({0: (0, 0), 5: None}))),
        ),
        *("int64 i", "int64[2] l = {0, 0}", at),
    )
    triple = f"{SPLIT} m = SequenceLength(s) c = Constant<value_int = 3>() n = Mul(m, c)"
    yield Family("length times 3", 18, triple, "n", LISTS, "int64[2] l", expected=three_times)
    several = lengths({(2, 4): (2, 4), (1, 2, 3): (1, 2, 3)}, [(-1, 7), (2, 3), (2, 5), (0, 0)])
    erase = f"{SPLIT} e = SequenceErase(s, i) a = ConcatFromSequence<axis=AXIS>(e)"
    fed_too = tuple(positions(several)), "int64[L] l, int64 i"
    yield Family("erased", 13, erase, "a", *fed_too, expected=erased)
    insert = f"{SPLIT} t = SequenceInsert(s, x)"
    length = f"{insert} n = SequenceLength(t)"
    yield Family("one more", 13, length, "n", several, "int64[L] l", expected=one_more)
    join = f"{insert} a = ConcatFromSequence<axis=AXIS>(t)"
    yield Family("twice", 13, join, "a", several, "int64[L] l", expected=twice)
    two = f"{SPLIT} a = SequenceAt(s, i)", "a", tuple(positions(LISTS))
    yield Family("two of a list", 13, *two, "int64[2] l, int64 i", expected=at)
    int32 = retyped(CHUNKS, np.int32)
    yield Family("chunks int32", 11, USES["length"][0], "n", int32, "int32 l", expected=count)


SEQUENCES = tuple(sequences())


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, EngineProcess]]:
    """A process for each engine."""
    made = {
        name: EngineProcess(name, "tests.engines.guarded:run_all")
        for name in (*ENGINES, "openvino-extended", "onnx-reference")
    }
    yield made
    for process in made.values():
        process.stop()


def attempts(
    processes: dict[str, EngineProcess],
    engine: Any,
    model: Any,
    feeds: Sequence[Any],
    threads: int = 2,
) -> list[Outcome]:
    """What the engine gives for each feed, or says; it may not die."""
    if not find_spec(engine.split("-", maxsplit=1)[0]):
        pytest.skip(f"{engine} is not installed")
    call = [engine, model.SerializeToString(), list(feeds), threads]
    found: list[Outcome] = processes[engine].call(call)
    return found


def outcomes(
    processes: dict[str, EngineProcess], engine: Any, model: onnx.ModelProto, feeds: Sequence[Any]
) -> list[Outcome]:
    """As `attempts`; the engine must take the model."""
    found = attempts(processes, engine, model, feeds)
    assert not isinstance(found[0], str) or "while loading" not in found[0], found[0]
    return found


def assert_right(found: Outcome, wanted: list[Array] | None, fed: Any) -> None:
    """Exactly what is expected; refused if that is None."""
    if wanted is None:
        assert isinstance(found, str), (fed, found)
        return
    assert not isinstance(found, str), (fed, found)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.tolist()) == (other.shape, other.tolist()), fed


SHAPES = [(0, 1, "float", 0), (-1, 2, "float", 2), (0, 2, "int64", 0)]
"""Axis, rank, element type, and the length of the other axes."""


@pytest.mark.parametrize("target", RUN_BY)
@pytest.mark.parametrize("family", [*FAMILIES, *SEQUENCES], ids=lambda family: family.name)
def test_a_lowered_model_is_refused_for_all_that_the_standard_refuses(
    processes: dict[str, EngineProcess], family: Family, target: Any
) -> None:
    for axis, rank, element, others in SHAPES:
        model = family.model(axis, rank, element)
        lowered = ts.lower(model, target=target)
        cases = family.cases(axis, rank, element, others)
        if element == "float":  # others OpenVINO converts, and goes on with a shape of that run
            cases = iter(with_right_ones(cases))
        feeds, wanted = zip(*cases, strict=True)
        for engine in RUN_BY[target]:
            found = outcomes(processes, engine, lowered, list(feeds))
            for each in zip(found, wanted, feeds, strict=True):
                assert_right(*each)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_converted_model_is_refused_where_the_original_is(
    processes: dict[str, EngineProcess], family: Family, engine: Any
) -> None:
    for axis, rank, element, others in SHAPES[1:]:
        model = family.model(axis, rank, element)
        feeds, wanted = zip(*family.cases(axis, rank, element, others), strict=True)
        original = attempts(processes, engine, model, feeds)
        converted = [ts.convert(model, opset=opset) for opset in OPSETS]
        for made in converted:
            found = attempts(processes, engine, made, feeds)
            for before, after, right, fed in zip(original, found, wanted, feeds, strict=True):
                if right is None and isinstance(before, str):
                    assert isinstance(after, str), (made, fed, before, after)
                elif right is not None and not isinstance(before, str):
                    assert_right(after, right, fed)


REFUSED_THERE = ("any lists", "erased", "one more", "twice")
IMPORTED = [each for each in (*FAMILIES, *SEQUENCES) if each.name not in REFUSED_THERE]
"""What the extensions import; the others they refuse then (TS310)."""


@pytest.mark.parametrize("family", IMPORTED, ids=lambda family: family.name)
def test_openvino_with_the_extensions_refuses_too(
    processes: dict[str, EngineProcess], family: Family
) -> None:
    """The import makes the parts itself, with the same guards."""
    for axis, rank, element, others in SHAPES[:2]:
        model = family.model(axis, rank, element)
        cases = with_right_ones(family.cases(axis, rank, element, others))
        feeds, wanted = zip(*cases, strict=True)
        found = outcomes(processes, "openvino-extended", model, feeds)
        for each in zip(found, wanted, feeds, strict=True):
            assert_right(*each)


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize(
    "name", ["ceil of 4", "equal 2 at 13", "any lists", "variadic", "lists at"]
)
def test_strings_are_guarded_too(
    processes: dict[str, EngineProcess], name: str, target: Any
) -> None:
    """OpenVINO takes them element by element (D17)."""
    family = next(each for each in (*FAMILIES, *SEQUENCES) if each.name.startswith(name))
    model = family.model(0, 1, "string")
    feeds, wanted = zip(*family.cases(0, 1, "string", 0), strict=True)
    lowered = ts.lower(model, target=target)
    for each in zip(outcomes(processes, target, lowered, list(feeds)), wanted, feeds, strict=True):
        assert_right(*each)


@pytest.mark.parametrize("family", [*FAMILIES, *SEQUENCES][::3], ids=lambda family: family.name)
def test_one_thread_of_openvino_refuses_as_well(
    processes: dict[str, EngineProcess], family: Family
) -> None:
    """With `start_async` and `wait`; `infer` would give stale results (D23)."""
    lowered = ts.lower(family.model(0, 1, "float"), target="openvino")
    feeds, wanted = zip(*family.cases(0, 1, "float", 0), strict=True)
    for each in zip(attempts(processes, "openvino", lowered, feeds, 1), wanted, feeds, strict=True):
        assert_right(*each)


BODIES = {
    "If": "go = Constant<value = bool {1}>() a = If(go)<then_branch = t() => (float[P] b) {"
    " b = SequenceAt(s, i) }, else_branch = e() => (float[Q] d) { d = Identity(x) }>",
    "Loop": "one = Constant<value_int = 1>() go = Constant<value = bool {1}>()"
    " a = Loop(one, go, x)<body = t(int64 k, bool c, float[P] y) => (bool d, float[Q] b) {"
    " d = Identity(c) b = SequenceAt(s, i) }>",
}


def assert_goes_on(processes: dict[str, EngineProcess], family: Family) -> None:
    lowered = ts.lower(family.model(0, 1, "float"), target="openvino")
    feeds, wanted = zip(*with_right_ones(family.cases(0, 1, "float", 0)), strict=True)
    for each in zip(outcomes(processes, "openvino", lowered, feeds), wanted, feeds, strict=True):
        assert_right(*each)


@pytest.mark.parametrize("body", BODIES)
def test_openvino_goes_on_after_a_refusal_in_a_body(
    processes: dict[str, EngineProcess], body: str
) -> None:
    fed = tuple(positions(dims({6: (3, 3)})))
    family = Family(
        *(body, 18, f"{SPLIT} {BODIES[body]}", "a", fed, "int64 i"),
        initializers="int64[2] l = {3, 3}",
        expected=at,
    )
    assert_goes_on(processes, family)


def test_the_loop_of_a_join_goes_on_after_a_refusal(processes: dict[str, EngineProcess]) -> None:
    """OpenVINO's Loop would read what is no longer there."""
    stacked = f"{SPLIT} b = ConcatFromSequence<axis=0, new_axis=1>(s) a = Squeeze(b, zero)"
    fed = (Fed(6, (6,), {"l": np.array([6])}), Fed(8, None, {"l": np.array([6])}))
    family = Family(
        *("stacked", 18, stacked, "a", fed, "int64[1] l"), initializers="int64[1] zero = {0}"
    )
    assert_goes_on(processes, family)


def test_what_stays_as_it_was_needs_no_guard() -> None:
    """`convert` adds nodes only where lengths are calculated."""
    for family in FAMILIES:
        if family.name in ("lists at 13", "constant at 13"):
            made: Any = ts.convert(family.model(0, 1, "float"), opset=21)
            assert [node.op_type for node in made.graph.node] == ["Split"]


@pytest.mark.parametrize("target", ["portable", "openvino"])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("lengths", ["", "split=[2, 4],"])
@pytest.mark.parametrize("opset", [1, 2, 9])
def test_what_cannot_be_checked_is_noted(opset: int, lengths: str, axis: int, target: Any) -> None:
    """Before opset 10 lengths and bounds are attributes; only what the node refuses is refused."""
    body = f"{{ a, b = Split<{lengths} axis={axis}>(x) }}"
    text = f"g (float[M, N] x) => (float[M, A] a, float[M, B] b) {body}"
    made = parse_model(f'<ir_version: 3, opset_import: ["" : {opset}]> {text}')
    model = onnx_model(made)
    report = lower_graph(model, target)
    (node,) = model.model.graph
    is_moved = target == "portable" or not lengths
    assert (node.op_type, node.attributes.get_int("axis")) == ("Split", 1 if is_moved else axis)
    lowered = ts.lower(made, target)
    found = [each for each in ts.check(lowered, target) if each.code in ("TS841", "TS843")]
    assert [each.severity for each in found] == ["warning"] * is_moved
    assert all("convert it to opset 13" in each.fix for each in found)
    said = "only the engine can check" if target == "portable" else "uneven parts (D3)"
    assert [note for note in report.notes if said in note] == report.notes[: len(found)]
    assert ts.lower(lowered, target) == lowered


@pytest.mark.parametrize("lengths", ["", "split=[2, 4],"])
def test_a_split_of_opset_1_that_the_target_lacks_is_refused(lengths: str) -> None:
    """ONNX Runtime has no kernel for it, and no other split is there to be written."""
    text = f"g (float[6] x) => (float[A] a, float[B] b) {{ a, b = Split<{lengths} axis=0>(x) }}"
    model = parse_model(f'<ir_version: 3, opset_import: ["" : 1]> {text}')
    assert [each.severity for each in ts.check(model, "onnxruntime")] == ["error"]
    with refused("TS513", "no kernel for Split-1"):
        ts.lower(model, "onnxruntime")


def test_lengths_at_run_time_that_no_node_before_opset_10_can_check_are_refused() -> None:
    text = "g (float[6] x, float[2] l) => (float[A] a, float[B] b) { a, b = Split(x, l) }"
    model = parse_model(f'<ir_version: 8, opset_import: ["" : 1]> {text}')
    with pytest.raises(ts.SplitError, match="convert to opset 10") as caught:
        ts.lower(model, target="openvino")
    assert caught.value.code == "TS513"
