"""Where engines differ is told: shape, element type, first index, largest difference."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import tensorsplit as ts
from tensorsplit.core.errors import (
    ENGINE_CRASHED,
    ENGINE_MISSING,
    ENGINE_REFUSED,
    LIMIT,
    SplitError,
)
from tensorsplit.engines import compare as compare_module
from tensorsplit.engines.compare import (
    RELATIVE,
    Difference,
    Reference,
    Tolerance,
    _rounded_up,
    differences,
)
from tensorsplit.engines.limits import Limits
from tests.engines.models import model, node, split_model, tensor

DATA = np.array([3.0, -1.0, 4.0, 1.5, -9.0, 2.5], np.float32)


def differ(found: Any, expected: Any) -> list[Difference]:
    return differences({"y": found}, {"y": expected}, engine="it", reference="ours")


def one(found: Any, expected: Any) -> Difference:
    (difference,) = differ(found, expected)
    return difference


def floats(*bits: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(struct.pack(f"<{len(bits)}I", *bits), np.float32)


def test_equal_outputs_do_not_differ() -> None:
    outputs = {
        "f": floats(0x7FC00001, 0x80000000, 0x3F800000),
        "s": [np.array(["a", "b"], object), np.array([], object)],
        "i": np.array([1, 2]).astype(ml_dtypes.int4),
        "none": None,
        "empty": [],
    }
    assert differences(outputs, dict(outputs), engine="it", reference="ours") == []
    assert differ(np.array(["a"]), np.array(["a"], object)) == []


def test_the_first_index_both_values_and_the_largest_difference_are_told() -> None:
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = expected.copy()
    found[0, 2], found[1, 1] = 7, 3.5
    difference = one(found, expected)
    assert difference.aspect == "values"
    assert difference.index == (0, 2)
    assert (difference.count, difference.largest) == (2, "5")
    assert (difference.found, difference.expected) == ("7.0", "2.0")
    assert str(difference) == (
        "it: output 'y': 2 values differ, largest difference 5; the first at [0, 2] is 7.0,"
        " but ours has 2.0"
    )
    integers = expected.astype(np.int64)
    more = np.array([[0, 0, 2**60 + 1], [0, 5, 0]])
    assert one(integers + more, integers).largest == str(2**60 + 1)


def test_bits_decide_for_floats() -> None:
    zero = one(floats(0x80000000), floats(0))
    assert (zero.expected, zero.found, zero.largest) == ("0.0", "-0.0", "0")
    payload = one(floats(0x7FC00001), floats(0x7FC00002))
    assert payload.expected == "nan (bits 0x7fc00002)"
    assert payload.found == "nan (bits 0x7fc00001)"
    assert payload.largest == "0"
    lost = one(floats(0x7FC00000, 0x3F800000), floats(0x3F800000, 0x3F800000))
    assert (lost.count, lost.largest) == (1, "nan")


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16])
def test_small_floats_are_compared(dtype: Any) -> None:
    difference = one(np.array([1, 2, 4]).astype(dtype), np.array([1, 2, 3]).astype(dtype))
    assert (difference.index, difference.largest) == ((2,), "1")


@pytest.mark.parametrize(
    ("dtype", "left", "right", "largest"),
    [
        (np.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        (np.uint64, 0, 2**64 - 1, 2**64 - 1),
        (np.int8, -128, 127, 255),
        (np.bool_, False, True, 1),
        (ml_dtypes.int4, -8, 7, 15),
        (ml_dtypes.uint2, 0, 3, 3),
    ],
)
def test_integers_differ_exactly(dtype: Any, left: int, right: int, largest: int) -> None:
    pair = [np.array([value], object).astype(dtype) for value in (left, right)]
    assert one(pair[0], pair[1]).largest == str(largest)


@pytest.mark.parametrize(
    ("signalling", "quiet"),
    [
        (np.array([0x7F81], np.uint16).view(ml_dtypes.bfloat16), 0x7FC1),
        (np.array([0x7C24], np.uint16).view(np.float16), 0x7E24),
        (np.array([0x7F800001], np.uint32).view(np.float32), 0x7FC00001),
        (np.array([0x7FF0000000000001], np.uint64).view(np.float64), 0x7FF8000000000001),
    ],
    ids=["bfloat16", "float16", "float32", "float64"],
)
@pytest.mark.filterwarnings("error")
def test_a_nan_that_was_made_quiet_differs_by_nothing_but_its_bits(
    signalling: np.ndarray[Any, Any], quiet: int
) -> None:
    bits = np.array([quiet], f"u{signalling.itemsize}")
    difference = one(bits.view(signalling.dtype), signalling)
    assert difference.largest == "0"
    assert difference.found == f"nan (bits {quiet:#x})"


def test_strings_compare_by_value() -> None:
    difference = one(np.array(["a", "c"], object), np.array(["a", "b"], object))
    assert (difference.index, difference.largest) == ((1,), None)
    assert (difference.found, difference.expected) == ("'c'", "'b'")


def test_complex_numbers_are_compared() -> None:
    assert one(np.array([3 + 4j]), np.array([0j])).largest == "5"


def test_scalars_differ_at_no_index() -> None:
    assert one(np.array(1.0), np.array(2.0)).index == ()


def test_shape_element_type_length_and_kind_are_told() -> None:
    assert one(np.zeros((2, 3)), np.zeros((3, 2))).aspect == "shape"
    assert str(one(np.zeros(2, np.int32), np.zeros(2, np.int64))) == (
        "it: output 'y': element type int32, but ours has int64"
    )
    parts = [np.zeros(1), np.zeros(2)]
    length, value = differ([np.ones(1)], parts)
    assert (length.aspect, length.found, length.expected) == ("length", "1", "2")
    assert (value.output, value.aspect) == ("y[0]", "values")
    assert one(parts, parts[0]).found == "a sequence"
    assert one(None, parts[0]).found == "an empty optional"


def test_outputs_on_one_side_only_are_told() -> None:
    told = differences({"a": np.zeros(1)}, {"b": np.zeros(1)}, engine="it", reference="ours")
    assert [(entry.output, entry.aspect, entry.found) for entry in told] == [
        ("b", "missing", "none"),
        ("a", "missing", "such an output"),
    ]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(
        _model: object, inputs: Mapping[str, Any], *, engine: str, timeout: float | None = None
    ) -> dict[str, Any]:
        kinds = {"gone": ENGINE_MISSING, "crashing": ENGINE_CRASHED, "refusing": ENGINE_REFUSED}
        if timeout is not None:
            raise SplitError(LIMIT, "it took longer")
        if engine in kinds:
            raise SplitError(kinds[engine], "so it is")
        return {"y": inputs["x"] + (engine == "wrong")}

    monkeypatch.setattr(compare_module, "run", run)


@pytest.mark.usefixtures("engines")
def test_refusals_and_crashes_are_differences() -> None:
    right = Reference("right", {"y": DATA})
    engines = ("right", "refusing", "wrong", "crashing")
    told = [each for engine in engines for each in right.differences("m", {"x": DATA}, engine)]
    assert [(entry.engine, entry.aspect) for entry in told] == [
        ("refusing", "refused"),
        ("wrong", "values"),
        ("crashing", "crashed"),
    ]
    assert str(told[0]) == "refusing: refused: [TS603] so it is"


@pytest.mark.usefixtures("engines")
def test_what_can_not_be_run_is_raised() -> None:
    for engine, limits in (("gone", Limits()), ("slow", Limits(timeout=1))):
        with pytest.raises(SplitError):
            Reference("right", {"y": DATA}, limits=limits).differences("m", {"x": DATA}, engine)


@pytest.mark.engine
def test_measured_differences_are_told() -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    source = split_model(element=TensorProto.INT64)
    x = np.array([1, 2**31, 3, 4, 5, 6])
    reference = Reference("tensorsplit", ts.run(source, {"x": x}))
    assert reference.differences(source, {"x": x}, "onnxruntime") == []
    (difference,) = reference.differences(source, {"x": x}, "openvino")
    assert (difference.engine, difference.output, difference.index) == ("openvino", "a", (1,))
    assert difference.largest == str(2**32)
    refused = model(
        [node("SplitToSequence", "x", "s"), node("SequenceLength", "s", "n")],
        [tensor("x", shape=["N"])],
        [tensor("n", TensorProto.INT64)],
    )
    reference = Reference("onnxruntime", ts.run(refused, {"x": DATA}, engine="onnxruntime"))
    (difference,) = reference.differences(refused, {"x": DATA}, "openvino")
    assert difference.aspect == "refused"
    with pytest.raises(ts.SplitError, match="TS601"):
        reference.differences(source, {"x": x}, "nothing")


CALCULATED = np.array([1000.0, -20.0, 3.0, 0.001], np.float32)


def judged(found: Any, expected: Any, moved: tuple[str, ...] = (), **sizes: float) -> Difference:
    """The only difference, by a tolerance."""
    sides = {"engine": "it", "reference": "ours", "tolerance": Tolerance(**sizes)}
    (difference,) = differences({"y": found}, {"y": expected}, moved=moved, **sides)  # type: ignore[arg-type]  # of three types
    return difference


def test_what_is_calculated_has_a_tolerance_and_what_is_moved_has_none() -> None:
    found = CALCULATED * np.float32(1 + 1e-6)
    near = judged(found, CALCULATED)
    assert near.is_allowed
    assert near.count == (found != CALCULATED).sum()
    moved = judged(found, CALCULATED, moved=("y",), atol=1.0)
    assert not moved.is_allowed
    assert str(moved).endswith("never computed, so it must match bit for bit")


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        (np.float64, 1e-12, 1e-7),
        (np.float32, 1e-6, 1e-3),
        (np.float16, 2e-3, 5e-2),
        (ml_dtypes.bfloat16, 1e-2, 0.2),
        (ml_dtypes.float8_e4m3fn, 0.125, 0.5),
        (np.complex64, 1e-6, 1e-3),
    ],
)
def test_each_element_type_has_its_tolerance(dtype: Any, near: float, far: float) -> None:
    expected = np.array([1, 2, 4, 8]).astype(dtype)
    for distance, allowed in ((near, True), (far, False)):
        found = (np.array([1, 2, 4, 8]) * (1 + distance)).astype(dtype)
        assert judged(found, expected).is_allowed is allowed
        assert not one(found, expected).is_allowed


def test_what_sums_to_nearly_0_may_be_as_far_off_as_other_sums() -> None:
    expected = np.append(CALCULATED, np.float32(1e-7))
    found = expected.copy()
    found[-1] = -2e-4
    assert judged(found, expected).is_allowed
    assert not judged(found[-1:], expected[-1:]).is_allowed
    assert not judged(found, expected, atol=0.0).is_allowed


def test_the_options_are_told_with_one_that_would_do() -> None:
    found = CALCULATED + np.array([0, 0, 0.0301, 0], np.float32)
    difference = judged(found, CALCULATED, rtol=1e-3, atol=0.01)
    assert difference.count == 1
    assert difference.judged == "beyond --rtol 0.001 and --atol 0.01; --atol 0.028 would allow it"
    assert judged(found, CALCULATED, rtol=1e-3, atol=0.028).is_allowed
    assert judged(found, CALCULATED).judged == (
        "beyond --rtol 0.0001 (the default) and --atol 0.00115 (the default);"
        " --atol 0.03 would allow it"
    )


def test_nan_and_infinity_are_near_themselves_only() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    same = np.array([-np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert judged(same, odd).is_allowed
    for place, value in ((0, 1.0), (1, 3e38), (1, -np.inf), (3, np.nan), (3, np.inf)):
        found = odd.copy()
        found[place] = value
        for atol in (1, np.inf):
            difference = judged(found, odd, atol=atol)
            assert not difference.is_allowed
            assert (difference.index, difference.count) == ((place,), 1)
            assert difference.judged == f"beyond --rtol 0.0001 (the default) and --atol {atol}"


def test_every_bit_counts_if_both_are_0() -> None:
    difference = judged(np.array([-0.0]), np.array([0.0]), rtol=0, atol=0)
    assert not difference.is_allowed
    assert difference.judged == "--rtol 0 and --atol 0 ask for the same bits"


def test_integers_are_the_same_unless_an_option_says_otherwise() -> None:
    expected = np.array([2**62, 7])
    assert not judged(expected + 1, expected).is_allowed
    assert judged(expected + 1, expected, atol=1).is_allowed
    assert judged(expected + 3, expected, rtol=0, atol=1).judged.endswith("--atol 3 would allow it")
    text = judged(np.array(["a"], object), np.array(["b"], object), atol=9)
    assert not text.is_allowed


def test_a_usual_value_is_none_of_the_zeros_and_no_less_than_a_hundredth() -> None:
    mostly_0 = np.array([0, 0, 0, 8], np.float32)
    for off, allowed in ((7e-4, True), (9e-4, False)):  # of 8, a ten-thousandth
        assert (
            judged(mostly_0 + np.array([off, 0, 0, 0], np.float32), mostly_0).is_allowed is allowed
        )
    small = np.array([1e-5], np.float32)
    for off, allowed in ((0.9e-6, True), (1.1e-6, False)):  # of 0.01, a ten-thousandth
        assert judged(small + np.float32(off), small).is_allowed is allowed


def test_the_relative_tolerance_is_of_what_is_expected() -> None:
    assert not judged(np.array([1.5]), np.array([1.0]), rtol=0.4, atol=0).is_allowed
    assert judged(np.array([1.0]), np.array([1.5]), rtol=0.4, atol=0).is_allowed


def test_of_what_is_not_allowed_the_first_is_told_and_how_many() -> None:
    expected = np.ones(4)
    found = expected + np.array([1e-12, 0.5, 0, 0.25])
    difference = judged(found, expected)
    assert (difference.index, difference.count, difference.largest) == ((1,), 2, "0.5")


def test_what_is_offered_is_never_too_little() -> None:
    """Though it has two digits, and floats are not decimal."""
    for off in (0.011000000000000001, 0.83, 0.026, 0.00044000000000000007, 0.123456):
        needed = judged(np.array([off]), np.zeros(1), rtol=0, atol=off / 2).judged
        offered = float(needed.rpartition("--atol ")[2].removesuffix(" would allow it"))
        assert judged(np.array([off]), np.zeros(1), rtol=0, atol=offered).is_allowed
        assert offered <= 1.1 * off


def test_64_bits_are_not_rounded_before_they_are_compared() -> None:
    expected = np.array([2**62])
    assert judged(expected + 3, expected, rtol=0, atol=3).is_allowed
    assert not judged(expected + 3, expected, rtol=0, atol=2).is_allowed


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_the_size_of_a_complex_number_is_its_absolute_value(kind: str) -> None:
    """The default absolute tolerance follows from the median of the sizes."""
    rtol, atol = Tolerance().of(np.array([3 + 4j, -4 - 3j, 5j], kind))
    assert atol == pytest.approx(5 * rtol)
    assert rtol == RELATIVE[kind]


def test_what_is_offered_has_two_digits_and_none_smaller_would_do() -> None:
    random = np.random.default_rng(6)
    made = [float(each) for each in 10.0 ** random.uniform(-30, 30, 300)]
    made += [float(f"{digits}e{power}") for digits in range(10, 100) for power in range(-9, 9)]
    for number in (*made, *np.nextafter(made[300:], np.inf).tolist()):
        text = _rounded_up(number)
        assert len(Decimal(text).normalize().as_tuple().digits) <= 2
        assert float(text) >= number
        assert float(Context(prec=2).next_minus(Decimal(text))) < number * (1 + 1e-12)
