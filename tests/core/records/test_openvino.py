"""The OpenVINO records say what the pages of the operation set say, stated here by hand."""

from __future__ import annotations

import pytest

from tensorsplit.core.records import operators
from tensorsplit.core.schema import Operator

VARIADIC_SPLIT = operators["openvino.VariadicSplit-1"]
SPLIT = operators["openvino.Split-1"]

INTEGERS = {
    *("i4", "i8", "i16", "i32", "i64"),
    *("u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64"),
}


def test_variadic_split_has_no_attributes() -> None:
    assert VARIADIC_SPLIT.attributes == ()


def test_variadic_split_takes_the_data_the_axis_and_the_lengths() -> None:
    inputs = [(i.name, i.type_str, i.option) for i in VARIADIC_SPLIT.inputs]
    assert inputs == [
        ("data", "T1", "single"),
        ("axis", "T2", "single"),
        ("split_lengths", "T2", "single"),
    ]


def test_the_axis_of_variadic_split_is_a_scalar_or_a_list_of_one() -> None:
    assert VARIADIC_SPLIT.axis_ranks == (0, 1)


def test_split_has_the_attribute_num_splits_which_is_required() -> None:
    (attribute,) = SPLIT.attributes
    assert (attribute.name, attribute.type) == ("num_splits", "INT")
    assert attribute.required
    assert attribute.default is None


def test_split_takes_the_data_and_the_axis() -> None:
    assert [(i.name, i.type_str, i.option) for i in SPLIT.inputs] == [
        ("data", "T1", "single"),
        ("axis", "T2", "single"),
    ]


def test_the_axis_of_split_is_a_scalar() -> None:
    assert SPLIT.axis_ranks == (0,)


@pytest.mark.parametrize("record", [VARIADIC_SPLIT, SPLIT], ids=str)
class TestBoth:
    def test_belongs_to_opset1(self, record: Operator) -> None:
        assert (record.vendor, record.domain, record.since_version) == ("openvino", "opset1", 1)

    def test_is_a_primitive_with_shape_inference(self, record: Operator) -> None:
        assert record.support_level == "common"
        assert record.is_function is False
        assert record.has_shape_inference is True

    def test_the_axis_must_be_given_and_may_be_negative(self, record: Operator) -> None:
        assert record.axis == "axis"
        assert record.axis_default is None
        assert record.negative_axis is True

    def test_the_lengths_must_be_given(self, record: Operator) -> None:
        assert record.absent is None

    def test_the_outputs_are_many_and_of_the_type_of_the_data(self, record: Operator) -> None:
        assert [(o.type_str, o.option) for o in record.outputs] == [("T1", "variadic")]
        assert record.is_sequence is False

    def test_the_data_is_of_any_type(self, record: Operator) -> None:
        data = record.types_of(record.inputs[0])
        assert (data.name, data.any) == ("T1", True)
        assert {"f32", "f16", "bf16", "f64", "boolean", "string", "nf4"} <= set(data.types)
        assert set(data.types) >= INTEGERS

    def test_axis_and_lengths_are_of_any_integer_type(self, record: Operator) -> None:
        integers = record.type_constraints[1]
        assert (integers.name, integers.any) == ("T2", False)
        assert set(integers.types) == INTEGERS

    def test_the_source_is_a_page_of_openvino(self, record: Operator) -> None:
        assert record.source.startswith("https://docs.openvino.ai/")
        page = {"VariadicSplit": "variadic-split-1", "Split": "split-1"}[record.name]
        assert record.source.endswith(f"/movement/{page}.html")
