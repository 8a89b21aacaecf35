"""An error for every split node that its own version refuses, wherever it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest

from tensorsplit import SplitError
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    sequence,
    tensor,
    value,
)
from tests.model.check.untyped_outputs import check, examine

X = value("x", FLOAT, [4, 6])


def codes(made: Any, target: str | None = None) -> list[str]:
    return [finding.code for finding in check(made, target)]


def one(split: onnx.NodeProto, opset: int = 18, data: Any = X, **lengths: Any) -> onnx.ModelProto:
    """A model of one split node whose outputs are all used; other inputs are initializers."""
    constants = [tensor(name, items, np.asarray(items).dtype) for name, items in lengths.items()]
    return model(graph([split], [data], list(split.output), constants), opset)


def test_another_number_of_lengths_than_outputs_is_refused_before_they_are_known() -> None:
    split = node("Split", "x l", "a b c")
    for count, found in ((2, ["TS305"]), (3, ["TS824"]), ("K", ["TS824"])):
        made = model(graph([split], [X, value("l", INT64, [count])], ["a", "b", "c"]), 18)
        assert codes(made) == found


@pytest.mark.parametrize(
    ("code", "opset", "split", "lengths"),
    [
        ("TS103", 13, node("Split", "x", "a b", split=[2, 2]), {}),
        ("TS103", 11, node("Split", "x l", "a b"), {"l": [2, 2]}),
        ("TS103", 17, node("Split", "x", "a b", num_outputs=2), {}),
        ("TS104", 18, node("Split", "x l", "a b", num_outputs=2), {"l": [2, 2]}),
        ("TS104", 18, node("Split", "x", "a b"), {}),
        ("TS105", 18, node("Split", "x l", "a b"), {"l": np.array([2, 2], np.int32)}),
        ("TS106", 18, node("Split", "x l", "a b"), {"l": [[2, 2]]}),
        ("TS107", 11, node("SplitToSequence", "x", "a", keepdims=2), {}),
        ("TS203", 18, node("Split", "x", "a b", num_outputs=2, axis=2), {}),
        ("TS301", 11, node("Split", "x", "a b", split=[-1, 5]), {}),
        ("TS302", 13, node("Split", "x l", "a b"), {"l": [1, 2]}),
        ("TS303", 13, node("Split", "x", "a b c"), {}),
        ("TS304", 18, node("Split", "x", "a b c d", num_outputs=4, axis=1), {}),
        ("TS305", 18, node("Split", "x", "a b c", num_outputs=2), {}),
        ("TS305", 18, node("Split", "x l", "a b c"), {"l": [2, 2]}),
        ("TS307", 18, node("SplitToSequence", "x l", "a"), {"l": 0}),
        ("TS302", 18, node("SplitToSequence", "x l", "a"), {"l": [2]}),
    ],
)
def test_what_the_version_refuses_is_an_error(
    code: str, opset: int, split: onnx.NodeProto, lengths: dict[str, Any]
) -> None:
    if code == "TS304":  # ceil(5/4) = 2, and 2 * 3 > 5
        made = one(split, opset, value("x", FLOAT, [4, 5]), **lengths)
    else:
        made = one(split, opset, **lengths)
    (finding,) = check(made)
    assert (finding.code, finding.severity) == (code, "error")
    assert finding.node == f"graph/{split.op_type}[0]"
    assert finding.operator is not None
    assert finding.operator.startswith(f"onnx.{split.op_type}-")
    assert finding.parameter
    assert finding.message
    assert finding.fix


def test_a_scalar_has_no_axis() -> None:
    made = one(node("Split", "x", "a b", num_outputs=2), data=value("x", FLOAT, []))
    assert codes(made) == ["TS202"]


def test_the_element_type_is_one_that_the_version_lists() -> None:
    made = one(node("Split", "x", "a b"), 11, value("x", onnx.TensorProto.BFLOAT16, [4]))
    assert codes(made) == ["TS201"]


def test_a_sequence_is_no_data() -> None:
    assert codes(one(node("Split", "x", "a b", num_outputs=2), data=sequence("x"))) == ["TS204"]


def test_an_operator_that_the_opset_does_not_have() -> None:
    assert "TS101" in codes(one(node("SplitToSequence", "x", "a"), 10))


def test_several_things_wrong_with_one_node_are_all_reported() -> None:
    """Equal parts of a dimension of 4 are not 3, and Split-11 has no bfloat16."""
    made = one(node("Split", "x", "a b c"), 11, value("x", onnx.TensorProto.BFLOAT16, [4]))
    assert codes(made) == ["TS201", "TS303"]


def test_all_nodes_are_reported_in_their_order() -> None:
    nodes = [
        node("Split", "x", "a b c", num_outputs=2),
        node("Split", "x", "d e", num_outputs=2),
        node("Split", "x", "f g", num_outputs=2, axis=7),
    ]
    report = examine(model(graph(nodes, [X], list("abcdefg"))))
    assert [(f.node, f.code) for f in report.findings] == [
        ("graph/Split[0]", "TS305"),
        ("graph/Split[2]", "TS203"),
    ]
    assert report.summary == "2 errors in 3 split nodes"


def test_lengths_that_the_graph_computes_are_seen_through() -> None:
    """Half of the dimension 4 and 3 more do not sum to it."""
    nodes = [
        node("Constant", "", "half", value_ints=[2]),
        node("Constant", "", "more", value_ints=[3]),
        node("Concat", "half more", "l", axis=0),
        node("Split", "x l", "a b"),
    ]
    assert codes(model(graph(nodes, [X], ["a", "b"]))) == ["TS302"]


def nested(depth: int) -> onnx.ModelProto:
    """A wrong split in the innermost of so many If bodies."""
    body = graph([node("Split", "x", "a b c", name="wrong", num_outputs=2)], [], ["a"])
    for level in range(depth):
        branch = node("If", "condition", "a", name=f"if{level}", then_branch=body, else_branch=body)
        body = graph([branch], [], ["a"])
    body.input.extend([X, value("condition", BOOL, [])])
    return model(body)


def test_bodies_are_looked_into_at_any_depth() -> None:
    findings = [finding for finding in check(nested(3)) if finding.severity == "error"]
    assert {finding.code for finding in findings} == {"TS305"}
    assert len(findings) == 8
    assert "graph/if2.then_branch/if1.else_branch/if0.then_branch/wrong" in {
        finding.node for finding in findings
    }


def test_nesting_without_end_is_a_finding() -> None:
    made = model(graph([], [X], ["a"]))
    body = made.graph
    for _ in range(120):
        loop = body.node.add(op_type="Loop", input=["m", "c"], output=["a"])
        body = loop.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g
    assert "TS502" in codes(made)


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "custom"])
@pytest.mark.parametrize("opset", [(1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1])
def test_an_opset_beyond_all_is_a_finding_or_passes(domain: str, opset: int) -> None:
    """For onnx it is a number of 32 bits; of another domain it may be any."""
    made = model(graph([node("Split", "x", "y", domain=domain)], [X], ["y"]), 13, custom=1)
    for imported in made.opset_import:
        if imported.domain == domain:
            break
    else:
        imported = made.opset_import.add(domain=domain)
    imported.version = opset
    assert codes(made) == ([] if domain else ["TS101"])


def test_functions_are_looked_into_with_what_their_calls_give() -> None:
    """Four parts of 4 are right, four parts of 5 are not."""
    cut = function("F", "x", "a", [node("Split", "x", "a b c d", name="cut", num_outputs=4)])
    calls = [
        node("F", "x", "y", domain="custom"),
        node("F", "z", "w", domain="custom"),
    ]
    inputs = [value("x", FLOAT, [4]), value("z", FLOAT, [5])]
    findings = check(model(graph(calls, inputs, ["y", "w"]), functions=[cut], custom=1))
    errors = [finding for finding in findings if finding.severity == "error"]
    assert [(f.code, f.node) for f in errors] == [("TS304", "function custom::F/cut")]


@pytest.mark.parametrize(("axis", "expected"), [(None, []), (0, []), (1, []), (2, ["TS203"])])
def test_attributes_of_functions_have_the_value_of_the_call(
    axis: int | None, expected: list[str]
) -> None:
    cut = function(
        "F",
        "x",
        "a b",
        [linked("Split", "x", "a b", link("axis", "axis"), num_outputs=2)],
        ["axis"],
    )
    call = node("F", "x", "y z", domain="custom", axis=axis)
    made = model(graph([call], [X], ["y", "z"]), functions=[cut], custom=1)
    assert codes(made) == expected


def test_of_functions_that_nobody_calls_only_that_is_said() -> None:
    """Whatever is wrong in them; one that only another of them calls is none that runs."""
    wrong = node("Split", "x", "a b", split=[1, 2], nothing=3)
    cut = function("F", "x", "a b", [linked("Split", "x", "a b", link("num_outputs", "n"))], ["n"])
    also = function("G", "x", "a b", [wrong, node("F", "x", "c d", domain="custom")])
    used = one(node("Split", "x", "a b", num_outputs=2))
    used.functions.extend([cut, also])
    for target in (None, "onnxruntime"):
        assert [(f.code, f.severity, f.node) for f in check(used, target)] == [
            ("TS813", "note", "function custom::F"),
            ("TS813", "note", "function custom::G"),
        ]
    used.graph.node.append(node("F", "x", "e f", domain="custom", n=3))
    used.opset_import.add(domain="custom", version=1)
    assert codes(used) == ["TS305", "TS813"]


def test_every_kind_of_model_is_taken(tmp_path: Path) -> None:
    made = one(node("Split", "x", "a b c", num_outputs=2))
    path = tmp_path / "m.onnx"
    onnx.save(made, path)
    before = made.SerializeToString()
    ir_model = onnx_ir.from_proto(made)
    for given in (made, path, str(path), ir_model):
        assert codes(given) == ["TS305"]
    assert made.SerializeToString() == before


def test_lengths_in_external_data_are_read_and_weights_are_not(tmp_path: Path) -> None:
    lengths = tensor("l", [1, 2])
    (tmp_path / "data.bin").write_bytes(lengths.raw_data)
    lengths.ClearField("raw_data")
    lengths.data_location = onnx.TensorProto.EXTERNAL
    lengths.external_data.add(key="location", value="data.bin")
    weights = tensor("w", np.zeros((4, 6)), np.float32)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="missing.bin")
    nodes = [node("Add", "x w", "y"), node("Split", "y l", "a b")]
    made = model(graph(nodes, [X], ["a", "b"], [lengths, weights]))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert codes(tmp_path / "m.onnx") == ["TS302"]


@pytest.mark.parametrize("name", ["attention", "uneven"])
def test_the_examples_are_clean(name: str) -> None:
    report = examine(Path(__file__).parents[3] / "examples" / f"{name}.onnx")
    assert report.findings == ()
    assert report.split_nodes > 0


@pytest.mark.parametrize("opset", [1, 2, 11, 13, 18, 24])
def test_right_splits_give_no_findings(opset: int) -> None:
    if opset < 13:
        made = one(node("Split", "x", "a b", axis=1, split=[2, 4]), opset)
    else:
        made = one(node("Split", "x l", "a b", axis=1), opset, l=[2, 4])
    assert codes(made) == []


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"no model")
    for given in (path, tmp_path / "missing.onnx", 7):
        with pytest.raises(SplitError, match="TS501"):
            check(given)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(SplitError, match="TS601"):
        check(one(node("Split", "x", "a b", num_outputs=2)), "tensorrt")


def test_a_model_that_is_not_well_formed_is_a_finding() -> None:
    made = one(node("Split", "missing", "a b", num_outputs=2))
    assert [(f.code, f.severity) for f in check(made)] == [("TS502", "error")]


def test_an_attribute_given_twice_is_a_finding() -> None:
    split = node("Split", "x", "a b", num_outputs=2)
    split.attribute.append(split.attribute[0])
    assert "TS502" in codes(one(split))


def test_a_model_that_is_no_graph_is_refused_at_each_contradiction() -> None:
    """Two nodes produce the names of one, so that there is no graph to analyse."""
    nodes = [
        node("Split", "x", "a b", num_outputs=2),
        node("Split", "x", "a b", name="wrong", num_outputs=3),
    ]
    findings = check(model(graph(nodes, [X, value("n", INT64, [])], ["a", "b"])))
    assert [(each.code, each.node) for each in findings] == 2 * [("TS502", "graph/wrong")]


def test_a_wrong_split_that_never_runs_is_a_warning() -> None:
    """D22: two of onnx's own node tests have one."""
    then = graph([node("Split", "x s", "p q", name="cut")], [], ["p"])
    other = graph([node("Identity", "x", "r")], [], ["r"])
    nodes = [node("If", "c", "z", name="if", then_branch=then, else_branch=other)]

    def chosen(condition: bool) -> list[tuple[str, str, str]]:
        constants = [tensor("c", condition, np.bool_), tensor("s", [1, 2])]
        found = check(model(graph(nodes, [value("x", FLOAT, [4])], ["z"], constants)))
        return [(f.code, f.severity, f.node) for f in found if f.code == "TS302"]

    assert chosen(True) == [("TS302", "error", "graph/if.then_branch/cut")]
    assert chosen(False) == [("TS302", "warning", "graph/if.then_branch/cut")]
