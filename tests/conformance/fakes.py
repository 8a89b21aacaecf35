"""A few cases of the tests' own, so that what runs and judges cases is tested without the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tensorsplit.conformance.case import Built, Case, CaseSplit
from tensorsplit.conformance.runner import Subject
from tensorsplit.conformance.subjects import load

PLANTED = Path(__file__).parent / "planted"

_TYPES = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "string": TensorProto.STRING}


def planted(name: str) -> str:
    """The path of a planted engine."""
    return str(PLANTED / f"{name}.py")


def planted_subject(name: str) -> Subject:
    """A planted engine as a subject; it is known to be harmless to import."""
    return Subject(planted(name), name, load(planted(name)))


def case(
    name: str,
    *,
    element_type: str = "float",
    shape: tuple[int, ...] = (4, 3),
    lengths: tuple[int, ...] = (1, 3),
    legal: bool = True,
    data: Any = None,
    damage: bool = False,
) -> Case:
    """A Split-13 along axis 0 with the lengths as an initializer."""

    def recipe(rng: np.random.Generator) -> Built:
        values = rng.integers(1, 100, shape) if data is None else np.asarray(data)
        kinds = {"float": np.float32, "int64": np.int64, "string": np.str_}
        x = values.astype(kinds[element_type])
        x = x.astype(object) if element_type == "string" else x
        names = [f"y{place}" for place in range(len(lengths))]
        kind = _TYPES[element_type]
        inputs = {"x": x} | ({"damage": np.ones(1, "f4")} if damage else {})
        graph = helper.make_graph(
            [helper.make_node("Split", ["x", "lengths"], names, name="split")],
            "g",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info(name, kind, None) for name in names],
            [helper.make_tensor("lengths", TensorProto.INT64, [len(lengths)], lengths)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        ends = np.cumsum(lengths)
        expected = {
            name: x[end - length : end]
            for name, end, length in zip(names, ends, lengths, strict=True)
        }
        return Built(
            model.SerializeToString(), b"", inputs, tuple(names), expected if legal else None
        )

    return Case(
        id=name,
        operator="onnx.Split-13",
        element_type=element_type,
        shape_class="static",
        rank=len(shape),
        spelling="initializer",
        place="graph",
        use="",
        rule="The lengths are those given.",
        decision="" if legal else "D6",
        expects="parts" if legal else "refusal",
        cut=CaseSplit(shape, 0, lengths, keepdims=True) if legal else None,
        model_format="onnx",
        opset=13,
        recipe=recipe,
    )
