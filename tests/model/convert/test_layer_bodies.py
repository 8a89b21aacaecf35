"""Layers of an OpenVINO IR with bodies, which become If and Loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.model.ir_files import IrFile
from tests.model.openvino_ir.engine import run_in_openvino
from tests.refusals import refused

RANDOM = np.random.default_rng(26)
X = RANDOM.standard_normal((4, 3)).astype(np.float32)


def _floats(values: Any) -> Any:
    return np.array(values, np.float32)


Feeds = list[list[Any]]


def _parameter(array: Any, *open: int, name: str = "") -> Any:
    import openvino as ov
    from openvino import opset13 as ops

    made = np.asarray(array)
    dims = [-1 if axis in open else size for axis, size in enumerate(made.shape)]
    return ops.parameter(ov.PartialShape(dims), made.dtype.type, name=name or None)


def _int64(value: Any) -> Any:
    from openvino import opset13 as ops

    return ops.constant(np.array(value, np.int64))


def _saved(outputs: list[Any], inputs: list[Any], path: Path) -> None:
    import openvino as ov
    from openvino import opset13 as ops

    for place, given in enumerate(inputs):
        given.set_friendly_name(f"x{place}")
    model = ov.Model([ops.result(each) for each in outputs], inputs, "bodies")
    ov.save_model(model, path, compress_to_fp16=False)


def counted(path: Path, count: Any = -1, axis: int = 0) -> Feeds:
    """A Loop that adds the number of the round and a tensor, while the total is below a limit."""
    import openvino as ov
    from openvino import opset13 as ops

    x, limit, rounds = _parameter(X), _parameter(np.float32(0)), _parameter(np.int64(0))
    number, state, added = _parameter(np.int64(0)), _parameter(X), _parameter(X)
    most = _parameter(np.float32(0))
    total = ops.add(ops.add(state, added), ops.convert(number, "f32"))
    holds = ops.less(ops.reduce_sum(total, _int64([0, 1]), keep_dims=False), most)
    row = ops.unsqueeze(ops.multiply(total, total), _int64(axis))
    results = [ops.result(each) for each in (holds, total, row)]
    limited = rounds if count is None else _int64(count)
    loop = ops.loop(limited, ops.constant(np.array(True)))
    loop.set_function(ov.Model(results, [number, state, added, most], "round"))
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(state, x.output(0), results[1].output(0))
    loop.set_invariant_input(added, x.output(0))
    loop.set_invariant_input(most, limit.output(0))
    last = loop.get_iter_value(results[1].output(0), -1)
    rows = loop.get_concatenated_slices(results[2].output(0), 0, 1, 1, -1, axis)
    _saved([last, rows], [x, limit, rounds], path)
    total = float(X.sum())
    limits = [np.float32(limit) for limit in (1e3, total * 2 + 1, -1e3)]
    return [[X, limit, np.array(rounds)] for limit in limits for rounds in (-1, 1, 5)]


def stepped(path: Path, stride: int = 1, axis: int = 0, back: int = 1) -> Feeds:
    """A TensorIterator over two inputs that subtracts each element of one from a state."""
    import openvino as ov
    from openvino import opset13 as ops

    other = RANDOM.standard_normal((4, 2)).astype(np.float32)
    shape = [*X.shape]
    shape[axis] = 1
    x, y, start = (
        _parameter(X, *((axis,) if axis else ())),
        _parameter(other),
        _parameter(X[:1, :1]),
    )
    part, second = _parameter(np.zeros(shape, np.float32)), _parameter(other[:1])
    state = _parameter(X[:1, :1])
    fed = ops.reduce_sum(ops.multiply(part, _int64_float(2)), _int64([0, 1]), keep_dims=True)
    if axis == 0:
        fed = ops.add(fed, ops.reduce_max(second, _int64([1]), keep_dims=True))
    made = ops.subtract(fed, state)
    results = [ops.result(each) for each in (made, ops.concat([made, made], 1 - axis))]
    parameters = [part, state] + [second] * (axis == 0)
    steps = ops.tensor_iterator()
    steps.set_body(ov.Model(results, parameters, "step"))
    bounds = [(0, -1) if each > 0 else (-1, 0) for each in (stride, back)]
    steps.set_sliced_input(part, x.output(0), bounds[0][0], stride, 1, bounds[0][1], axis)
    if axis == 0:
        steps.set_sliced_input(second, y.output(0), bounds[0][0], stride, 1, bounds[0][1], 0)
    steps.set_merged_input(state, start.output(0), results[0].output(0))
    last = steps.get_iter_value(results[0].output(0), -1)
    rows = steps.get_concatenated_slices(
        results[1].output(0), bounds[1][0], back, 1, bounds[1][1], axis
    )
    _saved([rows, last], [x, start] + [y] * (axis == 0), path)
    return [[X, X[:1, :1] * 3] + [other] * (axis == 0)]


def _int64_float(value: float) -> Any:
    from openvino import opset13 as ops

    return ops.constant(np.float32(value))


def chosen(path: Path) -> Feeds:
    """An If whose branches read different values, in another order, one of them twice."""
    import openvino as ov
    from openvino import opset13 as ops

    holds, x, y = _parameter(np.array(True)), _parameter(X, 0), _parameter(X, 0)
    a, b, c = (_parameter(X, 0) for _ in range(3))
    product = ops.multiply(a, b)
    then = [ops.result(product), ops.result(ops.subtract(a, b)), ops.result(product)]
    other = [ops.result(ops.negative(c)), ops.result(ops.abs(c)), ops.result(c)]
    choice = ops.if_op(holds)
    choice.set_then_body(ov.Model(then, [a, b], "then"))
    choice.set_else_body(ov.Model(other, [c], "else"))
    choice.set_input(x.output(0), a, None)
    choice.set_input(y.output(0), b, c)
    outputs = [choice.set_output(*pair) for pair in zip(then, other, strict=True)]
    _saved(outputs[::-1], [holds, x, y], path)
    return [[np.array(flag), X, X * 2 + 1] for flag in (True, False)]


def nested(path: Path) -> Feeds:
    """A Loop with an If in its body, which reads what is outside of both."""
    import openvino as ov
    from openvino import opset13 as ops

    x, count = _parameter(X), _parameter(np.int64(0))
    number, state, outer = _parameter(np.int64(0)), _parameter(X), _parameter(X)
    one, two, three = _parameter(X), _parameter(X), _parameter(X)
    then = ops.result(ops.add(one, two))
    other = ops.result(ops.multiply(three, three))
    is_odd = ops.equal(ops.mod(number, _int64(2)), _int64(1))
    choice = ops.if_op(is_odd.output(0))
    choice.set_then_body(ov.Model([then], [one, two], "then"))
    choice.set_else_body(ov.Model([other], [three], "else"))
    choice.set_input(state.output(0), one, three)
    choice.set_input(outer.output(0), two, None)
    made = choice.set_output(then, other)
    results = [ops.result(ops.constant(np.array(True))), ops.result(made)]
    loop = ops.loop(count, ops.constant(np.array(True)))
    loop.set_function(ov.Model(results, [number, state, outer], "round"))
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(state, x.output(0), results[1].output(0))
    loop.set_invariant_input(outer, x.output(0))
    _saved([loop.get_iter_value(results[1].output(0), -1)], [x, count], path)
    return [[X, np.array(rounds)] for rounds in (1, 2, 3)]


MODELS: dict[str, Callable[[Path], Feeds]] = {
    "endless": counted,
    "three": lambda path: counted(path, 3),
    "axis-1": lambda path: counted(path, 3, 1),
    "axis-2": lambda path: counted(path, 3, 2),
    "fed": lambda path: counted(path, None),
    "steps": stepped,
    "steps-back": lambda path: stepped(path, -1),
    "steps-back-in-order": lambda path: stepped(path, -1, back=-1),
    "steps-axis-1": lambda path: stepped(path, 1, 1),
    "steps-axis-1-back": lambda path: stepped(path, -1, 1, -1),
    "if": chosen,
    "nested": nested,
}


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", MODELS)
def test_a_layer_with_bodies_gives_what_openvino_gives(
    name: str, opset: int, tmp_path: Path
) -> None:
    feeds = MODELS[name](tmp_path / "model.xml")
    model = ts.convert(tmp_path / "model.xml", opset)
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    for given, expected in zip(feeds, run_in_openvino(tmp_path / "model.xml", feeds), strict=True):
        named = {entry.name: given[int(entry.name[1:])] for entry in model.graph.input}
        for engine in ("tensorsplit", "onnxruntime"):
            found = ts.run(model, named, engine=engine).values()
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5, strict=True)


def cutting(path: Path) -> Feeds:
    """A Loop that splits by lengths from outside of it."""
    import openvino as ov
    from openvino import opset13 as ops

    x, lengths = _parameter(X), _parameter(np.array([1, 3]))
    number, state, given = _parameter(np.int64(0)), _parameter(X), _parameter(np.array([1, 3]))
    cut = ops.variadic_split(state, _int64(0), given)
    made = ops.result(ops.concat([cut.output(1), cut.output(0)], 0))
    results = [ops.result(ops.constant(np.array(True))), made]
    loop = ops.loop(_int64(2), ops.constant(np.array(True)))
    loop.set_function(ov.Model(results, [number, state, given], "round"))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(state, x.output(0), made.output(0))
    loop.set_invariant_input(given, lengths.output(0))
    loop.set_invariant_input(number, _int64(0).output(0))
    _saved([loop.get_iter_value(made.output(0), -1)], [x, lengths], path)
    return [[X, np.array([1, 3])]]


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("engine", ["tensorsplit", "onnxruntime"])
def test_a_split_in_a_body_refuses_what_it_refused(engine: Any, tmp_path: Path) -> None:
    cutting(tmp_path / "model.xml")
    model = ts.convert(tmp_path / "model.xml", 18)
    for lengths in ([1, 3], [-1, 3], [4, 0]):
        (found,) = ts.run(model, {"x0": X, "x1": np.array(lengths)}, engine=engine).values()
        first = lengths[0] % 4 or 4 if lengths[0] != -1 else 1
        expected = np.roll(np.roll(X, -first, 0), -first, 0)
        np.testing.assert_array_equal(found, expected)
    for lengths in ([2, 3], [-1, 5], [-2, 6], [5, -1]):
        with pytest.raises(ts.SplitError):
            ts.run(model, {"x0": X, "x1": np.array(lengths)}, engine=engine)


def _inside(around: IrFile, label: str, write: Callable[[IrFile], None]) -> str:
    """Return a body whose constants are in the file of the layer around it."""
    body = IrFile()
    body.weights = around.weights
    write(body)
    around.weights = body.weights
    layers, edges = "".join(body.layers), "".join(body.edges)
    return f"<{label}><layers>{layers}</layers><edges>{edges}</edges></{label}>"


def _whole(outer: int, inner: int, more: str = "") -> str:
    return f'external_port_id="{outer}" internal_layer_id="{inner}" {more}'


ROWS = 'axis="0" start="0" end="-1" stride="1" part_size="1"'
LOOP = f"""<port_map><input {_whole(2, 1)}/><input {_whole(3, 2)}/>
<input {_whole(-1, 0, 'purpose="current_iteration"')}/>
<output {_whole(-1, 6, 'purpose="execution_condition"')}/>
<output {_whole(4, 8)}/><output {_whole(5, 9, ROWS)}/></port_map>
<back_edges><edge from-layer="8" to-layer="1"/></back_edges>"""


def rounds(count: int | None = 4, number: tuple[str, str] = ("i64", "")) -> IrFile:
    """A Loop that adds the number of the round and ``y`` to ``x``, and collects what it gets."""
    ir = IrFile()
    x, y = (ir.parameter(name, "f32", "1,3") for name in ("x", "y"))
    holds = ir.parameter("holds", "boolean", "1")
    limit = ir.parameter("n", "i32", "1") if count is None else ir.int64(count, scalar=True)

    def write(body: IrFile) -> None:
        place = body.parameter("place", *number)
        state, added = (body.parameter(name, "f32", "1,3") for name in ("state", "added"))
        (made,) = body.layer("Convert", (place,), 1, '<data destination_type="f32"/>')
        (total,) = body.layer("Add", (state, added), 1)
        body.result(body.constant(b"\1", "boolean", "1"))
        (summed,) = body.layer("Add", (total, made), 1)
        body.result(summed)
        body.result(summed)

    text = LOOP + _inside(ir, "body", write)
    last, rows = ir.layer("Loop", (limit, holds, x, y), 2, text, name="loop", version="opset5")
    ir.result(last, "last")
    ir.result(rows, "rows")
    return ir


FED = {"x": _floats([[1, 2, 3]]), "y": _floats([[10, 20, 30]]), "holds": np.array([True])}


def after(count: int) -> Any:
    """What the Loop gives in each round."""
    return np.array([FED["x"][0] + n * FED["y"][0] + n * (n - 1) / 2 for n in range(1, count + 1)])


@pytest.mark.parametrize("number", [("i64", ""), ("i64", "1"), ("i32", "1"), ("i32", "")])
def test_a_loop_knows_the_number_of_its_round(number: tuple[str, str], tmp_path: Path) -> None:
    model = ts.convert(rounds(4, number).save(tmp_path), 18)
    onnx.checker.check_model(model, full_check=True)
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    made = {node.op_type: node for node in loop.attribute[0].g.node if node.name.startswith("loop")}
    assert ("Cast" in made, "Reshape" in made) == (number[0] == "i32", number[1] != "")
    found = ts.run(model, FED)
    np.testing.assert_array_equal(found["rows"], after(4))
    np.testing.assert_array_equal(found["last"], after(4)[-1:])


@pytest.mark.parametrize("count", [1, 3])
def test_a_loop_runs_as_often_as_is_fed(count: int, tmp_path: Path) -> None:
    model = ts.convert(rounds(None).save(tmp_path), 18)
    found = ts.run(model, FED | {"n": np.array([count], np.int32)})
    np.testing.assert_array_equal(found["rows"], after(count))


def test_a_loop_of_no_round_gives_what_it_starts_with(tmp_path: Path) -> None:
    model = ts.convert(rounds(0).save(tmp_path), 18)
    assert [bool(node.input[0]) for node in model.graph.node if node.op_type == "Loop"] == [True]
    found = ts.run(model, FED)
    np.testing.assert_array_equal(found["last"], FED["x"])
    assert found["rows"].shape[0] == 0


@pytest.mark.parametrize("count", [None, -1, 4])
def test_a_loop_whose_condition_is_false_runs_no_round(count: int | None, tmp_path: Path) -> None:
    model = ts.convert(rounds(count).save(tmp_path), 18)
    fed = {"n": np.array([-1], np.int32)} if count is None else {}
    found = ts.run(model, FED | fed | {"holds": np.array([False])})
    np.testing.assert_array_equal(found["last"], FED["x"])
    assert found["rows"].shape[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "code", "word"),
    [
        ('version="opset5"', 'version="opset6"', "TS514", "known is opset5"),
        ('type="Loop"', 'type="Scan"', "TS514", "none is known"),
        ('part_size="1"', 'part_size="2"', "TS514", "one by one"),
        ('stride="1"', 'stride="2"', "TS514", "one by one"),
        ('start="0"', 'start="1"', "TS514", "one by one"),
        ('end="-1"', 'end="-2"', "TS514", "one by one"),
        ('axis="0"', 'axis="-1"', "TS514", "counted from the end"),
        ('axis="0"', 'axis="1"', "TS514", "rank of an output"),
        ('axis="0"', 'axis="first"', "TS502", "axis 'first'"),
        ('<edge from-layer="8" to-layer="1"/>', "", "TS514", "last round"),
        (
            'from-layer="8" to-layer="1"/></back',
            'from-layer="8" to-layer="3"/></back',
            "TS502",
            "0, 1, 2",
        ),
        (
            'from-layer="8" to-layer="1"/></back',
            'from-layer="8" to-layer="0"/></back',
            "TS514",
            "twice",
        ),
        (f"<input {_whole(3, 2)}/>", "", "TS514", "nothing feeds"),
        (_whole(3, 2), _whole(-1, 2), "TS514", "nothing feeds"),
        (_whole(3, 2), _whole(3, 2, ROWS), "TS514", "counts its rounds"),
        (_whole(3, 2), _whole(3, 22), "TS502", "internal_layer_id 22"),
        (_whole(3, 2), _whole(33, 2), "TS502", "external_port_id 33"),
        (_whole(3, 2), 'external_port_id="3"', "TS502", "internal_layer_id ''"),
        (f"<output {_whole(4, 8)}/>", "", "TS514", "all outputs"),
    ],
)
def test_ports_that_say_something_else_are_refused(
    before: str, after: str, code: str, word: str, tmp_path: Path
) -> None:
    ir = rounds()
    assert before in ir.text
    with refused(code, "layer 'loop' (id 4)", word):
        ts.convert(ir.save(tmp_path, ir.text.replace(before, after, 1)), 18)


def steps(back: bool = False, shapes: tuple[str, ...] = ("3,?",)) -> IrFile:
    """A TensorIterator: each column of all inputs less the state is the next state."""
    ir = IrFile()
    inputs = [ir.parameter("start", "f32", "3,1")]
    inputs += [ir.parameter(f"x{place}", "f32", shape) for place, shape in enumerate(shapes)]
    start, end, stride = (-1, 0, -1) if back else (0, -1, 1)
    taken = f'axis="1" start="{start}" end="{end}" stride="{stride}" part_size="1"'

    def write(body: IrFile) -> None:
        state, made, *others = (body.parameter(str(n), "f32", "3,1") for n in range(len(inputs)))
        for other in others:
            (made,) = body.layer("Add", (made, other), 1)
        body.result(body.layer("Subtract", (made, state), 1)[0])

    last = 2 * len(inputs) - 1
    text = "".join(f"<input {_whole(n, n, taken)}/>" for n in range(1, len(inputs)))
    text += f"<input {_whole(0, 0)}/><output {_whole(len(inputs), last)}/>"
    edge = f'<edge from-layer="{last}" to-layer="0"/>'
    text = f"<port_map>{text}</port_map><back_edges>{edge}</back_edges>"
    text += _inside(ir, "body", write)
    ir.result(ir.layer("TensorIterator", inputs, 1, text, name="steps")[0], "last")
    return ir


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("shapes", [("3,?",), ("3,4", "3,4")])
def test_an_iterator_goes_through_the_columns(
    back: bool, shapes: tuple[str, ...], tmp_path: Path
) -> None:
    model = ts.convert(steps(back, shapes).save(tmp_path), 18)
    columns = RANDOM.integers(-9, 9, (len(shapes), 3, 4)).astype(np.float32)
    start = _floats([[1], [2], [4]])
    fed = {f"x{place}": each for place, each in enumerate(columns)}
    (found,) = ts.run(model, {"start": start, **fed}).values()
    for place in range(4)[:: -1 if back else 1]:
        start = columns[:, :, [place]].sum(0) - start
    np.testing.assert_array_equal(found, start)


@pytest.mark.parametrize("shapes", [("3,?", "3,?"), ("3,4", "3,?"), ("3,4", "3,5"), ("3,4", "...")])
def test_an_iterator_over_inputs_that_may_differ_is_refused(
    shapes: tuple[str, ...], tmp_path: Path
) -> None:
    with refused("TS514", "layer 'steps'", "as many parts"):
        ts.convert(steps(shapes=shapes).save(tmp_path), 18)


def test_an_iterator_over_an_axis_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ir = steps(shapes=("3,4", "3,4"))
    with refused("TS514", "layer 'steps'", "as many parts"):
        ts.convert(ir.save(tmp_path, ir.text.replace('axis="1"', 'axis="2"')), 18)


def test_an_iterator_whose_body_gives_nothing_is_refused(tmp_path: Path) -> None:
    ir = steps()
    text = re.sub("<output external[^>]*/>|<back_edges>.*</back_edges>", "", ir.text)
    with refused("TS514", "layer 'steps'", "does not give all outputs"):
        ts.convert(ir.save(tmp_path, text), 18)


def test_an_iterator_that_carries_nothing_gives_no_last_value(tmp_path: Path) -> None:
    ir = steps()
    text = re.sub("<back_edges>.*</back_edges>", "", ir.text)
    with refused("TS514", "layer 'steps'", "of the last round alone"):
        ts.convert(ir.save(tmp_path, text), 18)


def test_an_iterator_that_gives_nothing_is_left_out(tmp_path: Path) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "3,4")
    taken = 'axis="1" start="0" end="-1" stride="1" part_size="1"'
    text = f"<port_map><input {_whole(0, 0, taken)}/></port_map>"
    text += _inside(ir, "body", lambda body: body.result(body.parameter("0", "f32", "3,1")))
    ir.layer("TensorIterator", (x,), 0, text, name="steps")
    ir.result(ir.layer("Negative", (x,), 1)[0])
    made = ts.convert(ir.save(tmp_path), 18)
    assert [node.op_type for node in made.graph.node] == ["Neg"]


def test_an_iterator_that_goes_through_nothing_is_refused(tmp_path: Path) -> None:
    ir = steps()
    with refused("TS514", "layer 'steps'", "takes no parts"):
        ts.convert(ir.save(tmp_path, ir.text.replace('axis="1"', "")), 18)


def branches(second: str = "") -> IrFile:
    """An If: ``x - y`` and ``y``, or ``-y`` and ``y`` again."""
    ir = IrFile()
    inputs = [ir.parameter("holds", "boolean", "")]
    inputs += [ir.parameter(name, "f32", "3") for name in ("x", "y")]

    def then(body: IrFile) -> None:
        x, y = (body.parameter(name, "f32", "3") for name in ("x", "y"))
        body.result(y)
        body.result(body.layer("Subtract", (x, y), 1)[0])

    def other(body: IrFile) -> None:
        (made,) = body.layer("Negative", (body.parameter("y", "f32", "3"),), 1)
        body.result(made)
        body.result(body.layer("Negative", (made,), 1)[0])

    inner = f"<input {_whole(1, 0)}/><input {_whole(2, 1)}/>"
    outer = f"<output {_whole(4, 2)}/><output {_whole(3, 4)}/>"
    text = f"<then_port_map>{inner}{outer}</then_port_map>"
    outer = f"<output {_whole(3, 2)}/>" + (second or f"<output {_whole(4, 4)}/>")
    text += f"<else_port_map><input {_whole(2, 0)}/>{outer}</else_port_map>"
    text += _inside(ir, "then_body", then) + _inside(ir, "else_body", other)
    for name, end in zip(
        "ab", ir.layer("If", inputs, 2, text, name="if", version="opset8"), strict=True
    ):
        ir.result(end, name)
    return ir


def test_each_branch_has_its_inputs_and_outputs(tmp_path: Path) -> None:
    model = ts.convert(branches().save(tmp_path), 18)
    x, y = _floats([5, 6, 8]), _floats([1, 3, 2])
    for holds, expected in ((True, x - y), (False, -y)):
        found = ts.run(model, {"holds": np.array(holds), "x": x, "y": y})
        np.testing.assert_array_equal(found["a"], expected)
        np.testing.assert_array_equal(found["b"], y)
    keys = {prop.key for node in model.graph.node for prop in node.metadata_props}
    assert not keys


def test_a_branch_that_leaves_an_output_out_is_refused(tmp_path: Path) -> None:
    with refused("TS514", "layer 'if'", "all outputs"):
        ts.convert(branches(f"<output {_whole(3, 4)}/>").save(tmp_path), 18)
