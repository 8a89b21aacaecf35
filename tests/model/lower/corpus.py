"""Small models with everything that lowering must cope with, each as the text of onnx's parser.

Sizes of named dimensions and special inputs stand beside the text; all other inputs are random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.parser import parse_model

Array = np.ndarray[Any, np.dtype[Any]]

ELEMENT_TYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("bfloat16", "float16", "float", "double", "string", "bool", "complex64", "complex128"),
)


@dataclass(frozen=True)
class Case:
    """A model and what to feed it.

    Attributes:
        name: What to call it.
        opset: Its opset.
        text: The graph, and functions if there are any.
        sizes: Of the named dimensions of its inputs; 7 where none is given.
        feeds: Inputs that are not random; None leaves an input to its default.
        functions: The domain of its functions.
    """

    name: str
    opset: int
    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    feeds: Mapping[str, Any] = field(default_factory=dict)
    functions: str = ""

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The model."""
        version = (
            8
            if self.opset < 19
            else helper.find_min_ir_version_for([helper.make_opsetid("", self.opset)])
        )
        imports = f'"" : {self.opset}' + (f', "{self.functions}" : 1' if self.functions else "")
        return parse_model(f"<ir_version: {version}, opset_import: [{imports}]> {self.text}")

    def inputs(self, seed: int = 0) -> dict[str, Any]:
        """What to feed: random, but for what the case fixes."""
        rng = np.random.default_rng(seed)
        fed: dict[str, Any] = {}
        for value in self.model.graph.input:
            if value.name in self.feeds:
                if self.feeds[value.name] is not None:
                    fed[value.name] = self.feeds[value.name]
            elif value.type.HasField("sequence_type"):
                tensor = value.type.sequence_type.elem_type.tensor_type
                fed[value.name] = [self._random(rng, tensor) for _ in range(3)]
            else:
                fed[value.name] = self._random(rng, value.type.tensor_type)
        return fed

    def _random(self, rng: np.random.Generator, tensor: onnx.TypeProto.Tensor) -> Array:
        shape = [
            self.sizes.get(dim.dim_param, 7) if dim.dim_param else dim.dim_value
            for dim in tensor.shape.dim
        ]
        return random_array(rng, tensor.elem_type, shape)


def random_array(rng: np.random.Generator, element_type: int, shape: list[int]) -> Array:
    """Random non-zero values that every engine holds exactly."""
    numbers = rng.integers(1, 100, shape)
    if element_type == onnx.TensorProto.STRING:
        return np.array([f"s{number}" for number in numbers.ravel()], object).reshape(shape)
    if element_type == onnx.TensorProto.BOOL:
        return np.asarray(numbers % 2 == 0)
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    if dtype.kind == "c":
        return np.asarray(numbers + 1j * rng.integers(1, 100, shape)).astype(dtype)
    return numbers.astype(dtype)


def _loop(body: str, carried: str) -> str:
    return f"Loop(trip, yes, {carried}) <body = body (int64 i, bool go_in{body}>"


def _typed() -> list[Case]:
    """Every element type through every operator of the family."""
    cases = []
    for kind in ELEMENT_TYPES:
        cases += [
            Case(
                f"split13_{kind}",
                13,
                f"g ({kind}[7,4] x) => ({kind}[3,4] a, {kind}[4,4] b)"
                " <int64[2] lengths = {3,4}> { a, b = Split(x, lengths) }",
            ),
            Case(
                f"split18_{kind}",
                18,
                f"g ({kind}[2,7] x) => ({kind}[2,3] a, {kind}[2,3] b, {kind}[2,1] c)"
                " { a, b, c = Split<axis=1, num_outputs=3>(x) }",
            ),
            Case(
                f"sequence_{kind}",
                24,
                f"g ({kind}[7,2] x) => ({kind}[3,2] a, {kind}[1,2] b) <int64 c = {{3}}, int64 i0 ="
                " {0}, int64 i2 = {2}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i0)"
                "  b = SequenceAt(s, i2) }",
            ),
        ]
    return cases


_VERSIONS = [
    Case(
        "split2", 2, "g (float[6] x) => (float[2] a, float[4] b) { a, b = Split<split=[2,4]>(x) }"
    ),
    Case(
        "split2_equal",
        10,
        "g (float[6,3] x) => (float[6,1] a, float[6,1] b, float[6,1] c)"
        " { a, b, c = Split<axis=1>(x) }",
    ),
    *(
        Case(
            f"split{opset}_equal_alike_{dim}",
            opset,
            f"g (float[{dim}] x) => (float[A] a, float[A] b, float[B] c, float[B] d, float[B] e)"
            " { y = Abs(x)  p, q = Split(y)  r, s, t = Split(y)"
            "  a = Neg(p)  b = Neg(q)  c = Neg(r)  d = Neg(s)  e = Neg(t) }",
            {"N": 12},
        )
        for opset in (11, 13)
        for dim in ("6", "N")
    ),
    Case(
        "split11",
        11,
        "g (float[6,4] x) => (float[6,1] a, float[6,3] b)"
        " { a, b = Split<axis=-1, split=[1,3]>(x) }",
    ),
    Case("split13_equal", 13, "g (float[6] x) => (float[3] a, float[3] b) { a, b = Split(x) }"),
    Case("split13_one_output", 13, "g (float[6] x) => (float[6] a) { a = Split(x) }"),
    Case(
        "split18_even",
        18,
        "g (float[6] x) => (float[3] a, float[3] b) { a, b = Split<num_outputs=2>(x) }",
    ),
    Case(
        "split18_one_output", 18, "g (float[6] x) => (float[6] a) { a = Split<num_outputs=1>(x) }"
    ),
    Case(
        "split18_zero",
        18,
        "g (float[0,3] x) => (float[0,3] a, float[0,3] b) { a, b = Split<num_outputs=2>(x) }",
    ),
    Case(
        "split18_zero_dynamic",
        18,
        "g (float[N,3] x) => (float[A,3] a, float[B,3] b) { a, b = Split<num_outputs=2>(x) }",
        {"N": 0},
    ),
    Case(
        "split18_last_zero",
        18,
        "g (float[6] x) => (float[2] a, float[2] b, float[2] c, float[0] d)"
        " { a, b, c, d = Split<num_outputs=4>(x) }",
    ),
    Case(
        "split18_uneven_dynamic",
        18,
        "g (float[N,3] x) => (float[A,3] a, float[B,3] b, float[C,3] c)"
        " { a, b, c = Split<num_outputs=3>(x) }",
    ),
    Case(
        "split18_uneven_dynamic_negative_axis",
        18,
        "g (float[2,N] x) => (float[2,A] a, float[2,B] b)"
        " { a, b = Split<axis=-1, num_outputs=2>(x) }",
    ),
    Case(
        "split18_uneven_unranked",
        18,
        "g (float[2,N] x, int64[2] to) => (float[A,B] a, float[A,C] b)"
        " { y = Reshape(x, to)  a, b = Split<axis=-1, num_outputs=2>(y) }",
        feeds={"to": np.array([2, 7])},
    ),
    Case(
        "split13_zero_part",
        13,
        "g (float[6] x) => (float[0] a, float[6] b) <int64[2] l = {0,6}> { a, b = Split(x, l) }",
    ),
    Case(
        "split13_constant_node",
        13,
        "g (float[6,N] x) => (float[2,N] a, float[4,N] b)"
        " { l = Constant<value_ints=[2,4]>()  a, b = Split(x, l) }",
    ),
    Case(
        "split13_dead_output",
        13,
        "g (float[6] x) => (float[4] b) <int64[2] l = {2,4}> { a, b = Split(x, l) }",
    ),
    Case(
        "split18_missing_output",
        18,
        'g (float[N] x) => (float[B] b) { "", b = Split<num_outputs=2>(x) }',
    ),
    Case(
        "split13_int8_quantised",
        13,
        "g (float[6] x) => (float[2] a, float[4] b) <float scale ="
        " {0.5}, int8 zero = {0}, int64[2] l = {2,4}> { q = QuantizeLinear(x, scale, zero)"
        "  p, r = Split(q, l)  a = DequantizeLinear(p, scale, zero)"
        "  b = DequantizeLinear(r, scale, zero) }",
    ),
]

_RUNTIME = [
    Case(
        "split13_runtime",
        13,
        "g (float[7,2] x, int64[2] l) => (float[A,2] a, float[B,2] b) { a, b = Split(x, l) }",
        feeds={"l": np.array([5, 2])},
    ),
    Case(
        "split18_runtime_computed",
        18,
        "g (float[N,2] x) => (float[A,2] a, float[B,2] b)"
        " <int64[1] two = {2}> { d = Shape<start=0, end=1>(x)  r = Sub(d, two)"
        "  l = Concat<axis=0>(two, r)  a, b = Split(x, l) }",
    ),
    Case(
        "split13_overridable_default",
        13,
        "g (float[7] x, int64[2] l) => (float[A] a, float[B] b)"
        " <int64[2] l = {3,4}> { a, b = Split(x, l) }",
        feeds={"l": None},
    ),
    Case(
        "split13_overridable_fed",
        13,
        "g (float[7] x, int64[2] l) => (float[A] a, float[B] b)"
        " <int64[2] l = {3,4}> { a, b = Split(x, l) }",
        feeds={"l": np.array([6, 1])},
    ),
    Case(
        "sequence_runtime_lengths",
        13,
        "g (float[7,2] x, int64[3] l, int64 i) => (float[A,2] a)"
        " { s = SplitToSequence(x, l)  a = SequenceAt(s, i) }",
        feeds={"l": np.array([1, 2, 4]), "i": np.array(-2)},
    ),
    Case(
        "sequence_runtime_lengths_of_unknown_count",
        13,
        "g (float[7,2] x, int64[P] l, int64 i) =>"
        " (float[A,2] a, int64 n) { s = SplitToSequence(x, l)  a = SequenceAt(s, i)"
        "  n = SequenceLength(s) }",
        feeds={"l": np.array([1, 2, 4]), "i": np.array(1)},
    ),
    Case(
        "sequence_runtime_chunk",
        13,
        "g (float[7,2] x, int64 c, int64 i) => (float[A,2] a, int64 n)"
        " { s = SplitToSequence(x, c)  a = SequenceAt(s, i)  n = SequenceLength(s) }",
        feeds={"c": np.array(3), "i": np.array(2)},
    ),
    Case(
        "sequence_runtime_chunk32",
        13,
        "g (float[7,2] x, int32 c, int64 i) => (float[A,2] a)"
        " { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }",
        feeds={"c": np.array(3, np.int32), "i": np.array(0)},
    ),
    Case(
        "sequence_overridable_chunk",
        13,
        "g (float[7,2] x, int64 c) => (float[A,2] a, int64 n)"
        " <int64 c = {2}, int64 i = {1}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i)"
        "  n = SequenceLength(s) }",
        feeds={"c": np.array(4)},
    ),
    Case(
        "sequence_runtime_index",
        13,
        "g (float[7,2] x, int64 i) => (float[A,2] a)"
        " <int64 c = {3}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }",
        feeds={"i": np.array(-1)},
    ),
    Case(
        "sequence_of_one_part",
        13,
        "g (float[7,2] x, int64 i) => (float[A,2] a)"
        " <int64[1] c = {7}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }",
        feeds={"i": np.array(0)},
    ),
    Case(
        "sequence_of_one_part_of_strings",
        13,
        "g (string[7,2] x, int64 i) => (string[A,2] a)"
        " <int64[1] c = {7}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }",
        feeds={"i": np.array(-1)},
    ),
    Case(
        "sequence_int32_index",
        13,
        "g (float[7,2] x, int32 i) => (float[A,2] a)"
        " <int64 c = {3}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }",
        feeds={"i": np.array(1, np.int32)},
    ),
    Case(
        "insert_and_erase_at_a_runtime_position",
        13,
        "g (float[7,2] x, float[3,2] w, int64 i, int64 j) => (float[10,2] a, int64 n) <int64 c ="
        " {2}> { s = SplitToSequence(x, c)  t = SequenceInsert(s, w, i)"
        "  u = SequenceInsert(t, w, j)  v = SequenceErase(u, j)"
        "  a = ConcatFromSequence<axis=0>(v)  n = SequenceLength(v) }",
        feeds={"i": np.array(2), "j": np.array(2)},
    ),
    Case(
        "insert_and_erase_steps_at_a_runtime_position",
        13,
        "g (float[7,2] x, float[2] w, int64 i) => (float[8,2] a, float[2,7] b, float[2] d)"
        " { s = SplitToSequence<keepdims=0>(x)  t = SequenceInsert(s, w, i)"
        "  a = ConcatFromSequence<axis=0, new_axis=1>(t)  u = SequenceErase(t, i)"
        "  b = ConcatFromSequence<axis=1, new_axis=1>(u)  d = SequenceAt(t, i) }",
        feeds={"i": np.array(-3)},
    ),
    Case(
        "sequence_runtime_index_ones",
        13,
        "g (float[7,2] x, int64 i) => (float[2] a)"
        " { s = SplitToSequence<keepdims=0>(x)  a = SequenceAt(s, i) }",
        feeds={"i": np.array(5)},
    ),
]

_SEQUENCES = [
    Case(
        "ones_keepdims",
        11,
        "g (float[3,4] x) => (float[1,4] a, float[1,4] b) <int64 i0 = {0},"
        " int64 i2 = {-1}> { s = SplitToSequence<axis=0>(x)  a = SequenceAt(s, i0)"
        "  b = SequenceAt(s, i2) }",
    ),
    Case(
        "ones_dropped",
        11,
        "g (float[3,4] x) => (float[3] a) <int64 i = {1}>"
        " { s = SplitToSequence<axis=1, keepdims=0>(x)  a = SequenceAt(s, i) }",
    ),
    Case(
        "ones_dropped_dynamic",
        13,
        "g (float[N,4] x) => (float[4] a, int64 n) <int64 i = {1}>"
        " { s = SplitToSequence<keepdims=0>(x)  a = SequenceAt(s, i)  n = SequenceLength(s) }",
    ),
    Case(
        "ones_keepdims_dynamic",
        13,
        "g (float[4,N] x) => (float[4,1] a) <int64 i = {-2}>"
        " { s = SplitToSequence<axis=-1>(x)  a = SequenceAt(s, i) }",
    ),
    Case(
        "keepdims_ignored_scalar_one",
        11,
        "g (float[3,4] x) => (float[1,4] a) <int64 c = {1},"
        " int64 i = {1}> { s = SplitToSequence<keepdims=0>(x, c)  a = SequenceAt(s, i) }",
    ),
    Case(
        "keepdims_ignored_scalar_two",
        11,
        "g (float[3,4] x) => (float[1,4] a) <int64 c = {2},"
        " int64 i = {1}> { s = SplitToSequence<keepdims=0>(x, c)  a = SequenceAt(s, i) }",
    ),
    Case(
        "keepdims_ignored_lengths",
        11,
        "g (float[3,4] x) => (float[2,4] a) <int64[2] l = {1,2},"
        " int64 i = {1}> { s = SplitToSequence<keepdims=0>(x, l)  a = SequenceAt(s, i) }",
    ),
    Case(
        "keepdims_ignored_lengths_one",
        11,
        "g (float[2,4] x) => (float[1,4] a) <int64[2] l = {1,1},"
        " int64 i = {1}> { s = SplitToSequence<keepdims=0>(x, l)  a = SequenceAt(s, i) }",
    ),
    Case(
        "chunk_dynamic",
        13,
        "g (float[N,4] x) => (float[A,4] a, float[B,4] b, int64 n) <int64 c ="
        " {3}, int64 i = {2}, int64 j = {-3}> { s = SplitToSequence(x, c)  a = SequenceAt(s, i)"
        "  b = SequenceAt(s, j)  n = SequenceLength(s) }",
    ),
    Case(
        "chunk_dynamic_negative_axis",
        13,
        "g (float[4,N] x) => (float[4,A] a) <int64 c = {3},"
        " int64 i = {1}> { s = SplitToSequence<axis=-1>(x, c)  a = SequenceAt(s, i) }",
    ),
    Case(
        "lengths_zero_part",
        13,
        "g (float[5] x) => (float[0] a, float[5] b) <int64[3] l = {2,0,3},"
        " int64 i = {1}> { s = SplitToSequence(x, l)  a = SequenceAt(s, i)"
        "  b = ConcatFromSequence<axis=0>(s) }",
    ),
    Case(
        "one_length_in_a_list",
        13,
        "g (float[5] x) => (float[5] a) <int64[1] l = {5}, int64 i ="
        " {0}> { s = SplitToSequence(x, l)  a = SequenceAt(s, i) }",
    ),
    Case(
        "concat_whole",
        13,
        "g (float[N,4] x) => (float[N,4] a) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  a = ConcatFromSequence<axis=0>(s) }",
    ),
    Case(
        "concat_whole_static",
        13,
        "g (float[7,4] x) => (float[7,4] a) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  a = ConcatFromSequence<axis=-2>(s) }",
    ),
    Case(
        "concat_other_axis",
        13,
        "g (float[6,4] x) => (float[3,8] a) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  a = ConcatFromSequence<axis=1>(s) }",
    ),
    Case(
        "concat_new_axis",
        13,
        "g (float[6,4] x) => (float[2,3,4] a, float[3,4,2] b) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  a = ConcatFromSequence<axis=0, new_axis=1>(s)"
        "  b = ConcatFromSequence<axis=-1, new_axis=1>(s) }",
    ),
    Case(
        "concat_dropped",
        13,
        "g (float[N,4] x) => (float[M] a) { s = SplitToSequence<keepdims=0>(x)"
        "  a = ConcatFromSequence<axis=0>(s) }",
    ),
    Case(
        "concat_dropped_new_axis",
        13,
        "g (float[N,4] x) => (float[4,N] a)"
        " { s = SplitToSequence<keepdims=0>(x)  a = ConcatFromSequence<axis=1, new_axis=1>(s) }",
    ),
    Case(
        "length_static",
        13,
        "g (float[7] x) => (int64 n) <int64 c = {2}>"
        " { s = SplitToSequence(x, c)  n = SequenceLength(s) }",
    ),
    Case(
        "length_dynamic",
        13,
        "g (float[N] x) => (int64 n) <int64 c = {2}>"
        " { s = SplitToSequence(x, c)  n = SequenceLength(s) }",
    ),
    Case(
        "insert_end",
        13,
        "g (float[7,2] x, float[3,2] y) => (float[10,2] a, float[3,2] b, int64 n)"
        " <int64 c = {3}, int64 i = {-1}> { s = SplitToSequence(x, c)  t = SequenceInsert(s, y)"
        "  a = ConcatFromSequence<axis=0>(t)  b = SequenceAt(t, i)  n = SequenceLength(t) }",
    ),
    Case(
        "insert_middle",
        13,
        "g (float[7,2] x, float[3,2] y) => (float[10,2] a) <int64 c = {3}, int64"
        " p = {1}> { s = SplitToSequence(x, c)  t = SequenceInsert(s, y, p)"
        "  a = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "insert_negative",
        13,
        "g (float[7,2] x, float[3,2] y) => (float[10,2] a) <int64 c = {3},"
        " int64 p = {-1}> { s = SplitToSequence(x, c)  t = SequenceInsert(s, y, p)"
        "  a = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "erase_last",
        13,
        "g (float[7,2] x) => (float[6,2] a, int64 n) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  t = SequenceErase(s)  a = ConcatFromSequence<axis=0>(t)"
        "  n = SequenceLength(t) }",
    ),
    Case(
        "erase_first",
        13,
        "g (float[7,2] x) => (float[4,2] a) <int64 c = {3}, int64 p = {0}>"
        " { s = SplitToSequence(x, c)  t = SequenceErase(s, p)"
        "  a = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "insert_dynamic",
        13,
        "g (float[N,2] x, float[3,2] y) => (float[M,2] a, int64 n) <int64 c ="
        " {3}> { s = SplitToSequence(x, c)  t = SequenceInsert(s, y)"
        "  a = ConcatFromSequence<axis=0>(t)  n = SequenceLength(t) }",
    ),
    Case(
        "erase_dynamic",
        13,
        "g (float[N,2] x) => (float[M,2] a, float[B,2] b, int64 n) <int64 c ="
        " {3}, int64 p = {0}> { s = SplitToSequence(x, c)  t = SequenceErase(s, p)"
        "  a = ConcatFromSequence<axis=0>(t)  b = SequenceAt(t, p)  n = SequenceLength(t) }",
    ),
    Case(
        "identity",
        16,
        "g (float[7,2] x) => (float[1,2] a) <int64 c = {3}, int64 i = {2}>"
        " { s = SplitToSequence(x, c)  t = Identity(s)  a = SequenceAt(t, i) }",
    ),
    Case(
        "construct",
        13,
        "g (float[4,2] x) => (float[8,2] y) <int64[2] l = {1,3}, int64 i = {1}>"
        " { a, b = Split(x, l)  s = SequenceConstruct(a, b, x)"
        "  y = ConcatFromSequence<axis=0>(s) }",
    ),
    Case(
        "empty_insert",
        13,
        "g (float[4,2] x) => (float[4,2] y, float[3,2] z) <int64[2] l = {1,3},"
        " int64 i = {-1}> { a, b = Split(x, l)  e = SequenceEmpty()  s = SequenceInsert(e, a)"
        "  t = SequenceInsert(s, b)  y = ConcatFromSequence<axis=0>(t)  z = SequenceAt(t, i) }",
    ),
    Case(
        "unused",
        13,
        "g (float[7] x) => (float[7] y) <int64 c = {3}> { s = SplitToSequence(x, c)  y = Neg(x) }",
    ),
    Case(
        "length_int32_lengths",
        13,
        "g (float[7] x) => (float[4] a) <int32[2] l = {3,4}, int64 i ="
        " {1}> { s = SplitToSequence(x, l)  a = SequenceAt(s, i) }",
    ),
    Case(
        "sequence_output",
        13,
        "g (float[7] x) => (seq(float[A]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }",
    ),
    Case(
        "sequence_input",
        13,
        "g (seq(float[A]) s) => (float[A] y) <int64 i = {1}> { y = SequenceAt(s, i) }",
    ),
    Case(
        "sequence_output_int8",
        13,
        "g (int8[7] x) => (seq(int8[A]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }",
    ),
    Case(
        "sequence_output_int8_dynamic",
        13,
        "g (int8[N,2] x) => (seq(int8[A,2]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }",
    ),
    Case(
        "sequence_output_uint8_dropped",
        13,
        "g (uint8[N,2] x) => (seq(uint8[2]) s, uint8[2] a) <int64 i = {-1}>"
        " { s = SplitToSequence<keepdims=0>(x)  a = SequenceAt(s, i) }",
    ),
    Case(
        "sequence_output_of_if",
        17,
        "g (uint8[8,1] x, bool yes) => (seq(uint8) y) { y = If(yes) <then_branch = t () =>"
        " (seq(uint8) a) { a = SplitToSequence<axis=1>(x) }, else_branch = e () =>"
        " (seq(uint8) b) { b = SequenceConstruct(x, x) }> }",
        feeds={"yes": np.array(False)},
    ),
    Case(
        "chunk_of_a_computed_length",
        13,
        "g (float[N,2] x, float[M] y) => (float[A,2] a, int64 n) <int64 i = {1}>"
        " { d = Shape(y)  axes = Constant<value_ints=[0]>()  c = Squeeze(d, axes)"
        "  s = SplitToSequence(x, c)  a = SequenceAt(s, i)  n = SequenceLength(s) }",
        {"M": 2},
    ),
    Case(
        "chunks_of_nothing",
        13,
        "g (float[0,3] x) => (int64 n, float[0,3] y) <int64 c = {2}> { s = SplitToSequence(x, c)"
        "  n = SequenceLength(s)  y = Neg(x) }",
    ),
    Case(
        "insert_of_another_shape",
        13,
        "g (float[N,3] x, float[2,5] w, int64 i) => (float[A,B] y, float[C,D] z, int64 n)"
        " <int64 last = {-1}> { s = SplitToSequence(x)  t = SequenceInsert(s, w)"
        "  y = SequenceAt(t, last)  z = SequenceAt(t, i)  n = SequenceLength(t) }",
        feeds={"i": np.array(2)},
    ),
    Case(
        "insert_where_all_was_erased",
        13,
        "g (float[4,3] x, float[2,5] w, int64 i) => (float[2,5] y) <int64 first = {0}> {"
        " s = SequenceConstruct(x)  e = SequenceErase(s, i)  t = SequenceInsert(e, w)"
        "  y = SequenceAt(t, first) }",
        feeds={"i": np.array(-1)},
    ),
    Case(
        "insert_of_another_shape_anywhere",
        24,
        "g (float[2,N,3] x, float[2,A,B] w, int64 i) => (float[2,C,D] y, float[2,E,F] z)"
        " <int64 c = {2}> { s = SplitToSequence<axis=1>(x, c)  t = SequenceInsert(s, w, i)"
        "  y = SequenceAt(t, i)  u = SequenceErase(t, i)  z = SequenceAt(u, i) }",
        {"A": 5, "B": 0},
        feeds={"i": np.array(-2)},
    ),
    Case(
        "insert_of_another_shape_between_steps",
        17,
        "g (float[2,N,3] x, float[4,M] w, int64 i) => (float[C,D] y, float[E,F] z) {"
        " s = SplitToSequence<axis=1, keepdims=0>(x)  t = SequenceInsert(s, w, i)"
        "  y = SequenceAt(t, i)  u = SequenceErase(t, i)  z = SequenceAt(u, i) }",
        feeds={"i": np.array(1)},
    ),
    Case(
        "insert_of_strings_of_another_shape",
        13,
        "g (string[N,3] x, string[2,5] w, int64 i) => (string[A,B] y, string[C,D] z)"
        " <int64 last = {-1}> { s = SplitToSequence(x)  t = SequenceInsert(s, w)"
        "  y = SequenceAt(t, last)  z = SequenceAt(t, i) }",
        feeds={"i": np.array(2)},
    ),
    Case(
        "parts_of_any_shape_by_position",
        13,
        "g (float[N,M] x, float[M,N] w, int64 i) => (float[A,B] y)"
        " { s = SequenceConstruct(x, w, x)  y = SequenceAt(s, i) }",
        {"N": 3},
        feeds={"i": np.array(1)},
    ),
    Case(
        "join_on_another_axis",
        13,
        "g (float[N,4] x, float[N,M] w) => (float[A,B] y, float[C,D] z, float[E,4,F] u) {"
        " s = SplitToSequence(x)  y = ConcatFromSequence<axis=1>(s)  r = SplitToSequence(w)"
        "  t = SequenceInsert(r, w)  z = ConcatFromSequence<axis=0>(t)"
        "  u = ConcatFromSequence<axis=-1, new_axis=1>(s) }",
    ),
    Case(
        "strings_as_they_are",
        13,
        "g (string[3] x, string s) => (string[3] y, string t, string[3] z)"
        " { y = Identity(x)  t = Identity(s)  z = Split(x) }",
    ),
    Case(
        "optional_of_a_tensor",
        18,
        "g (float[2] x) => (float[2] y, float[2] z, bool a, bool b, bool c) {"
        " o = Optional(x)  y = OptionalGetElement(o)  z = OptionalGetElement(x)"
        "  a = OptionalHasElement(o)  e = Optional<type = float[2]>()  b = OptionalHasElement(e)"
        "  c = OptionalHasElement() }",
    ),
    Case(
        "optional_of_a_sequence",
        15,
        "g (float[N] x, bool yes) => (float[N] y, int64 n) { s = SplitToSequence(x)"
        "  o = Optional(s)  y = If(yes) <then_branch = t () => (float[N] p) {"
        " u = OptionalGetElement(o)  p = ConcatFromSequence<axis=0>(u) }, else_branch = e () =>"
        " (float[N] q) { q = Neg(x) }>  r = OptionalGetElement(o)  n = SequenceLength(r) }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "nodes_of_one_name",
        13,
        "g (float[4] x, bool yes) => (float[4] y) { [n] a = Neg(x)  [n] b = Neg(a)"
        "  [n_1] y = If(yes) <then_branch = t () => (float[4] p) { [k] o = Neg(b)  [k] p = Abs(o)"
        " }, else_branch = e () => (float[4] q) { [n] q = Neg(b) }> }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "sequence_map",
        17,
        "g (float[6,2] x) => (float[6,2] y) <int64 c = {2}> { s ="
        " SplitToSequence(x, c)  t = SequenceMap(s) <body = b (float[A,2] p) => (float[A,2] q)"
        " { q = Neg(p) }>  y = ConcatFromSequence<axis=0>(t) }",
    ),
]

_HEAD = "int64 i, bool go_in"

_CONTROL = [
    Case(
        "if_split",
        18,
        "g (float[N,4] x, bool yes) => (float[A,4] y) { y = If(yes) <then_branch = t"
        " () => (float[A,4] p) { p, q = Split<num_outputs=2>(x) }, else_branch = e () =>"
        " (float[A,4] r) { o, r = Split<num_outputs=2>(x) }> }",
        feeds={"yes": np.array(False)},
    ),
    Case(
        "if_sequence",
        13,
        "g (float[N,4] x, bool yes) => (float[A,4] y) <int64 c = {3}, int64 i ="
        " {1}> { y = If(yes) <then_branch = t () => (float[A,4] p) { s = SplitToSequence(x, c)"
        "  p = SequenceAt(s, i) }, else_branch = e () => (float[A,4] q) { q = Neg(x) }> }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "if_of_sequences",
        16,
        "g (float[7,4] x, bool yes) => (float[A,4] y) <int64 c = {3}, int64"
        " d = {2}, int64 i = {1}> { s = If(yes) <then_branch = t () => (seq(float[A,4]) p)"
        " { p = SplitToSequence(x, c) }, else_branch = e () => (seq(float[A,4]) q)"
        " { q = SplitToSequence(x, d) }>  y = SequenceAt(s, i) }",
        feeds={"yes": np.array(False)},
    ),
    Case(
        "captured_in_if",
        13,
        "g (float[N,4] x, bool yes) => (float[A,4] y) <int64 c = {3}, int64 i"
        " = {1}, int64 j = {0}> { s = SplitToSequence(x, c)  y = If(yes) <then_branch = t () =>"
        " (float[A,4] p) { p = SequenceAt(s, i) }, else_branch = e () => (float[B,4] q)"
        " { q = SequenceAt(s, j) }> }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "loop_split",
        18,
        f"g (float[N,4] x) => (float[N,4] y) <int64 trip = {{3}}, bool yes = {{1}}>"
        f" {{ y = Loop(trip, yes, x) <body = b ({_HEAD}, float[N,4] z) => (bool go, float[N,4] w)"
        " { go = Identity(go_in)  a, b = Split<num_outputs=2>(z)  w = Concat<axis=0>(b, a) }> }",
    ),
    Case(
        "loop_over_static",
        13,
        f"g (float[6,4] x) => (float[2,4] y) <int64 trip = {{3}}, bool yes ="
        f" {{1}}, int64 c = {{2}}, float[2,4] zero = {{0,0,0,0,0,0,0,0}}> {{ s ="
        f" SplitToSequence(x, c)  y = Loop(trip, yes, zero) <body = b ({_HEAD}, float[2,4] z) =>"
        " (bool go, float[2,4] w) { go = Identity(go_in)  p = SequenceAt(s, i)  w = Add(z, p) }> }",
    ),
    Case(
        "loop_over_dynamic",
        13,
        f"g (float[N,4] x) => (float[4] y) <bool yes = {{1}}, float[4] zero"
        f" = {{0,0,0,0}}> {{ s = SplitToSequence<keepdims=0>(x)  n = SequenceLength(s)"
        f"  y = Loop(n, yes, zero) <body = b ({_HEAD}, float[4] z) => (bool go, float[4] w)"
        " { go = Identity(go_in)  p = SequenceAt(s, i)  w = Add(z, p) }> }",
    ),
    Case(
        "loop_scan_output",
        13,
        f"g (float[N,4] x) => (float[N,1,4] y) <bool yes = {{1}}>"
        f" {{ s = SplitToSequence(x)  n = SequenceLength(s)"
        f"  y = Loop(n, yes) <body = b ({_HEAD}) =>"
        " (bool go, float[1,4] w) { go = Identity(go_in)  p = SequenceAt(s, i)  w = Neg(p) }> }",
    ),
    Case(
        "loop_carried_unchanged",
        13,
        f"g (float[6,4] x) => (float[6,4] y) <int64 trip = {{3}}, bool"
        f" yes = {{1}}, int64 c = {{2}}> {{ s = SplitToSequence(x, c)  t, y0 = Loop(trip, yes, s)"
        f" <body = b ({_HEAD}, seq(float[A,4]) z) => (bool go, seq(float[A,4]) w, float[2,4] o)"
        " { go = Identity(go_in)  w = Identity(z)  o = SequenceAt(z, i) }>"
        "  y = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "loop_insert",
        13,
        f"g (float[6,4] x) => (float[6,4] y) <int64 trip = {{3}}, bool yes ="
        f" {{1}}, int64 c = {{2}}> {{ s = SplitToSequence(x, c)  e = SequenceEmpty()"
        f"  t = Loop(trip, yes, e) <body = b ({_HEAD}, seq(float[A,4]) z) => (bool go,"
        " seq(float[A,4]) w) { go = Identity(go_in)  p = SequenceAt(s, i)  q = Neg(p)"
        "  w = SequenceInsert(z, q) }>  y = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "loop_insert_dynamic",
        13,
        f"g (float[N,4] x) => (float[N,4] y, int64 m) <bool yes = {{1}}>"
        f" {{ s = SplitToSequence<keepdims=0>(x)  n = SequenceLength(s)  e = SequenceEmpty()"
        f"  t = Loop(n, yes, e) <body = b ({_HEAD}, seq(float[4]) z) => (bool go, seq(float[4]) w)"
        " { go = Identity(go_in)  p = SequenceAt(s, i)  q = Neg(p)  w = SequenceInsert(z, q) }>"
        "  y = ConcatFromSequence<axis=0, new_axis=1>(t)  m = SequenceLength(t) }",
    ),
    Case(
        "loop_insert_of_another_length",
        13,
        f"g (float[2,4] x, float[3,4] w) => (float[A,4] y) <int64 trip = {{3}}, bool yes = {{1}}>"
        f" {{ s = SequenceConstruct(x)  t = Loop(trip, yes, s) <body = b ({_HEAD},"
        " seq(float[A,4]) z) => (bool go, seq(float[A,4]) v) { go = Identity(go_in)"
        "  v = SequenceInsert(z, w) }>  y = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "loop_insert_of_other_shapes",
        13,
        "g (float[N,3] x, int64 trip, int64 i) => (float[A,B] y, int64 n) <bool yes = {1}>"
        " { s = SplitToSequence(x)  t, v = Loop(trip, yes, s, x) <body = b (int64 j, bool go_in,"
        " seq(float[A,B]) z, float[C,D] w) => (bool go, seq(float[A,B]) o, float[C,D] p)"
        " { go = Identity(go_in)  q = Transpose(w)  o = SequenceInsert(z, q)"
        "  p = Concat<axis=0>(w, w) }>  y = SequenceAt(t, i)  n = SequenceLength(t) }",
        feeds={"trip": np.array(3), "i": np.array(-1)},
    ),
    Case(
        "loop_that_collects_open_shapes",
        17,
        f"g (float[N,M] x, int64 trip) => (float[A,B] y) <bool yes = {{1}}>"
        f" {{ e = SequenceEmpty()  t = Loop(trip, yes, e) <body = b ({_HEAD}, seq(float) z) =>"
        " (bool go, seq(float) o) { go = Identity(go_in)  p = Neg(x)  o = SequenceInsert(z, p) }>"
        "  y = ConcatFromSequence<axis=1>(t) }",
        feeds={"trip": np.array(2)},
    ),
    Case(
        "if_of_sequences_that_lie_in_different_ways",
        17,
        "g (float[N,M] x, float[K] w, bool yes, int64 i) => (float[A] y) <int64 c = {2}>"
        " { s = If(yes) <then_branch = t () => (seq(float[A]) p)"
        " { p = SplitToSequence<keepdims=0>(x) }, else_branch = e () => (seq(float[A]) q)"
        " { q = SplitToSequence(w, c) }>  y = SequenceAt(s, i) }",
        feeds={"yes": np.array(True), "i": np.array(2)},
    ),
    Case(
        "if_of_no_tensors",
        17,
        "g (float[N] x, bool yes) => (int64 n) { s = If(yes) <then_branch = t () => (seq(float) p)"
        " { p = SequenceEmpty() }, else_branch = e () => (seq(float) q) { q = SequenceEmpty() }>"
        "  n = SequenceLength(s) }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "if_that_passes_strings_on",
        13,
        "g (string[4] x, bool yes) => (string[A] y, string[B] z) { a, b = Split(x)"
        "  y, s = If(yes) <then_branch = t () => (string[A] p, seq(string[B]) c) {"
        " p = Identity(b)  c = SplitToSequence(x) }, else_branch = e () =>"
        " (string[A] q, seq(string[B]) d) { q = Identity(x)  d = SequenceConstruct(x, a) }>"
        "  z = ConcatFromSequence<axis=0>(s) }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "loop_that_swaps_two_sequences",
        13,
        "g (float[N,4] x, float[M,4] w) => (float[N,4] y, float[M,4] z) <int64 trip = {3},"
        " bool yes = {1}> { s = SplitToSequence(x)  r = SplitToSequence(w)"
        f"  t, u = Loop(trip, yes, s, r) <body = b ({_HEAD}, seq(float[A,4]) p,"
        " seq(float[A,4]) q) => (bool go_in, seq(float[A,4]) q, seq(float[A,4]) p) {}>"
        "  y = ConcatFromSequence<axis=0>(u)  z = ConcatFromSequence<axis=0>(t) }",
    ),
    Case(
        "if_of_one_tensor_twice",
        13,
        "g (float[4] x, bool yes) => (float[8] y) { s = If(yes) <then_branch = t () =>"
        " (seq(float[4]) p) { a = Neg(x)  p = SequenceConstruct(a, a) }, else_branch = e () =>"
        " (seq(float[4]) q) { b = Abs(x)  q = SequenceConstruct(b, b) }>"
        "  y = ConcatFromSequence<axis=0>(s) }",
        feeds={"yes": np.array(True)},
    ),
    Case(
        "if_of_an_empty_sequence",
        13,
        "g (float[N,4] x, bool yes) => (int64 n) { s = If(yes) <then_branch = t () =>"
        " (seq(float[1,4]) p) { p = SplitToSequence(x) }, else_branch = e () =>"
        " (seq(float[1,4]) q) { q = SequenceEmpty() }>  n = SequenceLength(s) }",
        feeds={"yes": np.array(False)},
    ),
    *(
        Case(
            f"if_on_a_constant_nobody_uses_{number}",
            13,
            "g (float[N,4] x) => (float[A,4] y) <bool always ="
            f" {{{number}}}> {{ q = SplitToSequence(x)"
            "  s = If(always) <then_branch = t () => (seq(float[A,4]) p) { p = SequenceInsert(q, x)"
            " }, else_branch = e () => (seq(float[A,4]) r) { n = If(always) <then_branch = u () =>"
            " (seq(float[A,4]) a) { a = Identity(q) }, else_branch = f () => (seq(float[A,4]) b)"
            " { b = SequenceErase(q) }>  r = SequenceInsert(n, x) }>"
            "  y = ConcatFromSequence<axis=0>(q) }",
        )
        for number in (0, 1)
    ),
    Case(
        "nested_if_in_loop",
        18,
        f"g (float[N,4] x, bool flag) => (float[A,4] y) <int64 trip = {{2}},"
        f" bool yes = {{1}}, int64 c = {{3}}, int64 k = {{1}}> {{ y = Loop(trip, yes, x) <body = b"
        f" ({_HEAD}, float[N,4] z) => (bool go, float[N,4] w) {{ go = Identity(go_in)  w = If(flag)"
        " <then_branch = t () => (float[A,4] p) { s = SplitToSequence(z, c)  p0 = SequenceAt(s, k)"
        "  p = Concat<axis=0>(p0, p0) }, else_branch = e () => (float[A,4] q)"
        " { q, r = Split<num_outputs=2>(z) }> }> }",
        {"N": 6},
        {"flag": np.array(True)},
    ),
    Case(
        "scan_split",
        18,
        "g (float[5,6] x) => (float[5,3] y) { y = Scan(x) <num_scan_inputs = 1, body"
        " = b (float[6] r) => (float[3] a) { a, o = Split<num_outputs=2>(r) }> }",
    ),
    Case(
        "scan_sequence",
        18,
        "g (float[5,7] x) => (float[5,3] y) <int64 c = {3}, int64 k = {1}>"
        " { y = Scan(x) <num_scan_inputs = 1, body = b (float[7] r) => (float[3] a)"
        " { s = SplitToSequence(r, c)  a = SequenceAt(s, k) }> }",
    ),
]

_FUNCTIONS = [
    Case(
        "function_split",
        18,
        "g (float[N,4] x) => (float[A,4] y, float[B,4] z) { y, z = c.F(x) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (b, d)'
        " { b, d = Split<num_outputs=2>(a) }",
        functions="c",
    ),
    Case(
        "function_sequence",
        18,
        "g (float[7,4] x) => (float[3,4] y) { y = c.F(x) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (b) { k = Constant<value_int=3>()'
        "  i = Constant<value_int=1>()  s = SplitToSequence(a, k)  b = SequenceAt(s, i) }",
        functions="c",
    ),
    Case(
        "function_returns_sequence",
        18,
        "g (float[7,4] x) => (float[1,4] y) <int64 i = {2}>"
        " { s = c.F(x)  y = SequenceAt(s, i) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (s) { k = Constant<value_int=3>()'
        "  s = SplitToSequence(a, k) }",
        functions="c",
    ),
    Case(
        "function_takes_sequence",
        18,
        "g (float[7,4] x) => (float[1,4] y) <int64 k = {3}>"
        " { s = SplitToSequence(x, k)  y = c.F(s) }"
        ' <domain: "c", opset_import: ["" : 18]> F (s) => (y) { i = Constant<value_int=2>()'
        "  y = SequenceAt(s, i) }",
        functions="c",
    ),
    Case(
        "function_takes_a_sequence_of_int8",
        17,
        "g (int8[7,4] x) => (int8[1,4] y) { s = SplitToSequence(x)  y = c.F(s) }"
        ' <domain: "c", opset_import: ["" : 17]> F (s) => (y) { i = Constant<value_int=2>()'
        "  y = SequenceAt(s, i) }",
        functions="c",
    ),
    Case(
        "function_if_on_a_constant_nobody_uses",
        18,
        "g (float[7,4] x) => (float[7,4] y) { y = c.F(x) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (y) { k = Constant<value_int=1>()'
        "  c = Cast<to=9>(k)  q = SplitToSequence(a, k)  s = If(c) <then_branch = t () =>"
        " (seq(float[A,4]) p) { p = SequenceInsert(q, a) }, else_branch = e () =>"
        " (seq(float[A,4]) r) { r = SequenceErase(q) }>  y = ConcatFromSequence<axis=0>(q) }",
        functions="c",
    ),
    Case(
        "function_axis_attribute",
        18,
        "g (float[4,N] x) => (float[4,A] y, float[4,B] z)"
        " { y, z = c.F<axis=1>(x) }"
        ' <domain: "c", opset_import: ["" : 18]> F <axis> (a) => (b, d)'
        " { b, d = Split<axis: int = @axis, num_outputs=2>(a) }",
        functions="c",
    ),
    Case(
        "function_no_split",
        18,
        "g (float[N] x) => (float[A] y, float[B] z) { w = c.F(x)"
        "  y, z = Split<num_outputs=2>(w) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (b) { b = Neg(a) }',
        functions="c",
    ),
    Case(
        "function_of_function",
        18,
        "g (float[N,4] x) => (float[A,4] y) { y = c.G(x) }"
        ' <domain: "c", opset_import: ["" : 18, "c" : 1]> G (a) => (e) { b, d = c.F(a)'
        "  e = Concat<axis=0>(d, b) }"
        ' <domain: "c", opset_import: ["" : 18]> F (a) => (b, d)'
        " { b, d = Split<num_outputs=2>(a) }",
        functions="c",
    ),
    Case(
        "function_older_opset",
        18,
        "g (float[6,4] x) => (float[3,4] y, float[3,4] z)"
        " { y, z = c.F(x) }"
        ' <domain: "c", opset_import: ["" : 13]> F (a) => (b, d) { b, d = Split(a) }',
        functions="c",
    ),
]

_VENDOR = [
    Case(
        "variadic_split",
        13,
        "g (float[7,4] x) => (float[2,4] y, float[5,4] z) <int64 a = {0}, int64[2]"
        " l = {2,-1}> { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }",
        functions="org.openvinotoolkit",
    ),
    Case(
        "variadic_split_dynamic",
        13,
        "g (float[N,4] x) => (float[A,4] y, float[2,4] z) <int64[1] a ="
        " {0}, int64[2] l = {-1,2}> { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }",
        functions="org.openvinotoolkit",
    ),
]

CASES = (*_VERSIONS, *_RUNTIME, *_SEQUENCES, *_CONTROL, *_FUNCTIONS, *_VENDOR, *_typed())
"""Every model, by the order of what it is about."""
