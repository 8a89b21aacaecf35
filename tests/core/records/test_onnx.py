"""Each ONNX record says what ONNX's own schema says, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import defs

from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.schema import Operator
from tests.refusals import refused

FAMILY = ("Split", "SplitToSequence")
ONNX = [record for record in operators.values() if record.vendor == "onnx"]
VARIADIC = 2147483647
OPTIONS = {
    defs.OpSchema.FormalParameterOption.Single: "single",
    defs.OpSchema.FormalParameterOption.Optional: "optional",
    defs.OpSchema.FormalParameterOption.Variadic: "variadic",
}


def schema_of(record: Operator) -> Any:  # onnx's stubs leave half of a schema out
    return defs.get_schema(record.name, record.since_version, record.domain)


def newest_known() -> int:
    """The newest opset that both the records and the installed onnx know."""
    return min(NEWEST_OPSET, defs.onnx_opset_version())


def test_there_is_a_record_for_every_schema_version_of_the_family() -> None:
    schemas = {
        (schema.name, schema.since_version)
        for schema in defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.name in FAMILY
    }
    assert {(record.name, record.since_version) for record in ONNX} == schemas


def test_the_records_were_compared_with_the_newest_opset() -> None:
    assert defs.onnx_opset_version() <= NEWEST_OPSET


@pytest.mark.parametrize("record", ONNX, ids=str)
class TestRecord:
    def test_domain_and_version(self, record: Operator) -> None:
        schema = schema_of(record)
        assert (schema.domain, schema.name) == (record.domain, record.name)
        assert schema.since_version == record.since_version
        assert not schema.deprecated

    def test_support_level(self, record: Operator) -> None:
        assert schema_of(record).support_level.name.lower() == record.support_level

    def test_is_a_function(self, record: Operator) -> None:
        schema = schema_of(record)
        has = schema.has_function or schema.has_context_dependent_function
        assert has is record.is_function

    def test_has_shape_inference(self, record: Operator) -> None:
        has = schema_of(record).has_type_and_shape_inference_function
        assert has is record.has_shape_inference

    def test_attributes(self, record: Operator) -> None:
        wanted = [
            (
                name,
                attribute.type.name,
                attribute.required,
                attribute.default_value.i if attribute.default_value.name else None,
            )
            for name, attribute in sorted(schema_of(record).attributes.items())
        ]
        assert [(a.name, a.type, a.required, a.default) for a in record.attributes] == wanted

    def test_inputs(self, record: Operator) -> None:
        wanted = [(i.name, i.type_str, OPTIONS[i.option]) for i in schema_of(record).inputs]
        assert [(i.name, i.type_str, i.option) for i in record.inputs] == wanted

    def test_outputs(self, record: Operator) -> None:
        wanted = [(o.name, o.type_str, OPTIONS[o.option]) for o in schema_of(record).outputs]
        assert [(o.name, o.type_str, o.option) for o in record.outputs] == wanted

    def test_counts_of_inputs_and_outputs(self, record: Operator) -> None:
        schema = schema_of(record)
        single = [i for i in record.inputs if i.option == "single"]
        assert (schema.min_input, schema.max_input) == (len(single), len(record.inputs))
        assert schema.min_output == 1 == len(record.outputs)
        assert schema.max_output == (VARIADIC if record.outputs[0].option == "variadic" else 1)

    def test_type_constraints_in_the_order_of_the_page(self, record: Operator) -> None:
        wanted = [
            (constraint.type_param_str, tuple(constraint.allowed_type_strs))
            for constraint in schema_of(record).type_constraints
        ]
        assert [(c.name, c.types) for c in record.type_constraints] == wanted

    def test_element_types_are_those_of_the_listed_types(self, record: Operator) -> None:
        for constraint in record.type_constraints:
            elements = {t.removeprefix("seq(").strip(")").split("(")[1] for t in constraint.types}
            assert constraint.element_types == elements
            assert not constraint.any

    def test_source_is_the_page_of_the_version(self, record: Operator) -> None:
        page = f"https://onnx.ai/onnx/operators/onnx__{record.name}.html"
        assert record.source == f"{page}#{record.name.lower()}-{record.since_version}"

    def test_only_text_that_speaks_of_negative_axes_allows_them(self, record: Operator) -> None:
        text = schema_of(record).attributes["axis"].description
        assert record.negative_axis is ("[-rank, rank-1]" in text)


@pytest.mark.parametrize("opset", range(1, newest_known() + 1))
@pytest.mark.parametrize("name", FAMILY)
def test_the_version_in_force_at_an_opset_is_the_one_onnx_names(name: str, opset: int) -> None:
    if name == "SplitToSequence" and opset < 11:
        with refused("TS101", opset, "11", parameter="opset"):
            in_force(name, opset)
    else:
        wanted = defs.get_schema(name, opset, "").since_version
        assert in_force(name, opset).since_version == wanted


@pytest.mark.parametrize("opset", [0, -1, NEWEST_OPSET + 1, 1 << 70, True, 13.0, "13", None, [13]])
def test_an_opset_that_does_not_exist_is_refused(opset: object) -> None:
    with refused("TS101", parameter="opset"):
        in_force("Split", opset)  # type: ignore[arg-type]


def test_an_operator_that_does_not_exist_is_refused() -> None:
    with refused("TS101", "onnx.Slice"):
        in_force("Slice", 13)
