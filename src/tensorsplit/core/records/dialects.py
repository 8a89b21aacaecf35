"""Splits of other libraries and standards: dialects, which are not of the family.

A dialect is a record as an operator version is: its rules are those of `core.rules`, or of its own
there. Each follows the document that is its source; what does not partition the axis is refused,
where a library would drop or repeat data. Operands are attributes in the order of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tensorsplit.core import rules
from tensorsplit.core.rules import LengthRule
from tensorsplit.core.schema import Attribute, Lengths, Operator, Parameter, TypeConstraint

_ANY = TypeConstraint("T", ("any",), frozenset(), any=True, description="any type it supports")
_DATA = (Parameter("input", "T", description="the tensor to split"),)
_PARTS = (Parameter("outputs", "T", "variadic", "the parts, in order"),)
_TYPES = {(0,): "INT", (1,): "INTS", (0, 1): "INT or INTS"}

_FROM_BACK, _FROM_FRONT = "counts from the back", "refused"


def _dialect(
    identifier: str,
    source: str,
    summary: str,
    given: Mapping[str, Mapping[int, LengthRule]],
    along: tuple[str, int | None] = ("axis", 0),
    *,
    negative: bool = True,
    **notes: str,
) -> Operator:
    """Return a record: what gives the lengths, and the axis with its default; with notes."""
    vendor, _, name = identifier.rpartition(".")
    is_only_one, text = len(given) == 1, "what gives the lengths"
    operands = [
        Attribute(operand, _TYPES[tuple(sorted(ranks))], required=is_only_one, description=text)
        for operand, ranks in given.items()
    ]
    axis, default = along
    axis_operand = Attribute(
        axis, "INT", required=default is None, default=default, description="the axis to split"
    )
    behaviour = {"negative axis": _FROM_BACK if negative else _FROM_FRONT, **notes}
    return Operator(
        vendor=vendor,
        name=name,
        since_version=0,
        domain=vendor,
        source=source,
        summary=summary,
        attributes=(*operands, axis_operand),
        inputs=_DATA,
        outputs=_PARTS,
        type_constraints=(_ANY,),
        lengths=tuple(Lengths(operand, ranks, "attribute") for operand, ranks in given.items()),
        axis=axis,
        axis_default=default,
        axis_from_back=negative,
        negative_axis=negative,
        is_dialect=True,
        notes=MappingProxyType(behaviour),
    )


_NUMPY = "https://numpy.org/doc/stable/reference/generated"
_TORCH = "https://docs.pytorch.org/docs/stable/generated"
_JAX = "https://docs.jax.dev/en/latest/_autosummary"

DIALECTS = (
    _dialect(
        "numpy.split",
        f"{_NUMPY}/numpy.split.html",
        "Splits into a number of equal parts, or at indices.",
        {"indices_or_sections": {0: rules.equal, 1: rules.slices}},
        indices="sliced as NumPy does; refused where data would be repeated",
    ),
    _dialect(
        "numpy.array_split",
        f"{_NUMPY}/numpy.array_split.html",
        "Splits into a number of parts that differ by 1 at most, or at indices.",
        {"indices_or_sections": {0: rules.balanced, 1: rules.slices}},
        indices="sliced as NumPy does; refused where data would be repeated",
    ),
    _dialect(
        "torch.chunk",
        f"{_TORCH}/torch.chunk.html",
        "Splits into at most so many chunks of ceil(d/n); the last one may be smaller.",
        {"chunks": {0: rules.at_most}},
        ("dim", 0),
        count="there may be fewer parts than were asked for",
    ),
    _dialect(
        "torch.split",
        f"{_TORCH}/torch.split.html",
        "Splits into chunks of one length, the last one perhaps smaller, or into given lengths.",
        {"split_size_or_sections": {0: rules.some_chunks, 1: rules.explicit}},
        ("dim", 0),
    ),
    _dialect(
        "torch.tensor_split",
        f"{_TORCH}/torch.tensor_split.html",
        "Splits into a number of parts that differ by 1 at most, or at indices.",
        {"indices_or_sections": {0: rules.balanced, 1: rules.slices}},
        ("dim", 0),
        indices="sliced as NumPy does; refused where data would be repeated",
    ),
    _dialect(
        "jax.numpy.split",
        f"{_JAX}/jax.numpy.split.html",
        "Splits into a number of equal parts, or at indices.",
        {"indices_or_sections": {0: rules.equal, 1: rules.starts}},
        indices="in order, from 0 to the dimension",
    ),
    _dialect(
        "jax.numpy.array_split",
        f"{_JAX}/jax.numpy.array_split.html",
        "Splits into a number of parts that differ by 1 at most, or at indices.",
        {"indices_or_sections": {0: rules.balanced, 1: rules.starts}},
        indices="in order, from 0 to the dimension",
    ),
    _dialect(
        "jax.lax.split",
        f"{_JAX}/jax.lax.split.html",
        "Splits into given lengths, which sum to the dimension.",
        {"sizes": {1: rules.explicit}},
    ),
    _dialect(
        "tensorflow.split",
        "https://www.tensorflow.org/api_docs/python/tf/split",
        "Splits into a number of equal parts, or into given lengths, one of which may be -1.",
        {"num_or_size_splits": {0: rules.equal, 1: rules.remainder}},
    ),
    _dialect(
        "litert.split",
        "https://www.tensorflow.org/mlir/tfl_ops#tflsplit_tflsplitop",
        "Splits into a number of equal parts.",
        {"num_splits": {0: rules.equal}},
        ("split_dim", None),
    ),
    _dialect(
        "litert.split_v",
        "https://www.tensorflow.org/mlir/tfl_ops#tflsplit_v_tflsplitvop",
        "Splits into given lengths, one of which may be -1: what the others leave.",
        {"size_splits": {1: rules.remainder}},
        ("split_dim", None),
    ),
    _dialect(
        "webnn.split",
        "https://www.w3.org/TR/webnn/#api-mlgraphbuilder-split",
        "Splits into a number of equal parts, or into given lengths, none of them 0.",
        {"splits": {0: rules.equal, 1: rules.not_empty}},
        negative=False,
    ),
    _dialect(
        "coreml.split",
        "https://apple.github.io/coremltools/source/coremltools.converters.mil.mil.ops.defs.html",
        "Splits into a number of equal parts, or into given lengths.",
        {"num_splits": {0: rules.equal}, "split_sizes": {1: rules.explicit}},
        ("axis", None),
        both="Core ML takes both if they agree; here one of them says it all",
    ),
    _dialect(
        "mpsgraph.split",
        "https://developer.apple.com/documentation/metalperformanceshadersgraph/mpsgraph",
        "Splits into a number of equal parts, or into given lengths.",
        {"numSplits": {0: rules.equal}, "splitSizes": {1: rules.explicit}},
        ("axis", None),
    ),
    _dialect(
        "nnapi.SPLIT",
        "https://developer.android.com/ndk/reference/group/neural-networks",
        "Splits into a number of equal parts.",
        {"num_outputs": {0: rules.equal}},
        ("axis", None),
    ),
    _dialect(
        "directml.SPLIT",
        "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_split_operator_desc",
        "Splits into the lengths that the descriptions of the outputs have.",
        {"OutputTensors": {1: rules.not_empty}},
        ("Axis", None),
        negative=False,
    ),
    _dialect(
        "qnn.Split",
        "https://docs.qualcomm.com/bundle/publicresource/topics/80-63442-50/MasterOpDef.html",
        "Splits at indices, each of which is where a part after the first one starts.",
        {"split_index": {1: rules.starts}},
        negative=False,
    ),
    _dialect(
        "ncnn.Slice",
        "https://github.com/Tencent/ncnn/blob/master/docs/developer-guide/operators.md#slice",
        "Splits into given lengths; each -233 takes its share of what is left, rounded down.",
        {"slices": {1: rules.shares}},
    ),
    _dialect(
        "mnn.Slice",
        "https://github.com/alibaba/MNN/blob/master/source/shape/ShapeSlice.cpp",
        "Splits into a number of equal parts, or into given lengths, one of which may be -1.",
        {"slicePoints": {0: rules.equal, 1: rules.remainder}},
        uneven="MNN asserts that the parts are equal; a build without assertions loses the rest",
    ),
    _dialect(
        "tosa.SLICE",
        "https://www.mlplatform.org/tosa/tosa_spec.html#_slice",
        "Takes one slice for each part; there is no split. The sizes are those of all slices.",
        {"size": {1: rules.not_empty}},
        ("axis", None),
        negative=False,
    ),
    _dialect(
        "stablehlo.slice",
        "https://openxla.org/stablehlo/spec#slice",
        "Takes one slice for each part; there is no split. The limits are where slices end.",
        {"limit_indices": {1: rules.ends}},
        ("axis", None),
        negative=False,
    ),
    _dialect(
        "onednn.submemory_desc",
        "https://uxlfoundation.github.io/oneDNN/struct_dnnl_memory_desc-2.html",
        "Takes one region of memory for each part; there is no split. The dims are those of all.",
        {"dims": {1: rules.explicit}},
        ("axis", None),
        negative=False,
    ),
)
