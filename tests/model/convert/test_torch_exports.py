"""Models as PyTorch's exporters write them, through every tool and engine.

Where PyTorch is installed, the modules of `architectures` are exported as well: by TorchScript at
each opset, traced or, for loops and lists, compiled; by dynamo at one. ``--seed N`` chooses another
one, and other opsets to convert to.

The names of the files tell the module, the exporter (``ts``: TorchScript, ``dy``: dynamo), the
opset, and whether the first dimension is dynamic; the ``.npz`` beside them holds what PyTorch was
fed and what it gave. ``tests/data/torch/README.md`` says how they were made.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import tensorsplit as ts
from tests.model.build import known, outputs
from tests.model.convert.legal import converted
from tests.model.random_checks import Case, can_run, checks

FOLDER = Path(__file__).parents[2] / "data" / "torch"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
LOWEST = {"gate": 9, "split": 10, "mha": 10}
"""Where the other operators of a model end: Slice, Mod and Expand with values of the run."""


def load(name: str) -> tuple[ModelProto, list[Any], dict[str, Any]]:
    module = name.split("_", maxsplit=1)[0]
    made = onnx.load(FOLDER / f"{name}.onnx")
    with np.load(FOLDER / f"{module}.npz") as arrays:
        expected = [arrays[key] for key in sorted(arrays) if key.startswith("y")]
        return made, expected, {made.graph.input[0].name: arrays["x"]}


def check(made: ModelProto, expected: list[Any], feeds: dict[str, Any]) -> None:
    for found, wanted in zip(outputs(made, **feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_an_export_goes_up_and_down(name: str) -> None:
    made, expected, feeds = load(name)
    check(made, expected, feeds)
    for target in known(8, 9, 10, 11, 12, 13, 15, 17, 18, 21, 24):
        if target < LOWEST.get(name.split("_", maxsplit=1)[0], 8):
            continue
        there = converted(made, target)
        check(there, expected, feeds)


@pytest.mark.engine
@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_runs_what_an_export_became(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    made, expected, feeds = load(name)
    for target in known(10, 13, 18):
        there = converted(made, target)
        there.ir_version = min(there.ir_version, 10)
        session = onnxruntime.InferenceSession(there.SerializeToString())
        for found, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


OPSETS = {"ts": (9, 11, 13, 17, 18, 21), "dynamo": (18, 21), "script": (11, 13, 17, 20)}
NAMES = (
    *("AdaptiveNorm", "Attention", "CSP", "Coupling", "FocalStem", "GLU", "GRUCell"),
    *("GatedConvolution", "GroupedQueries", "Inception", "LSTMCell", "Mamba"),
    *("MixtureOfExperts", "PackedAttention", "Res2Net", "Reversible", "Rotary", "ShiftedWindows"),
    *("ShuffleNet",),
    *("SwiGLU", "TopOfExperts", "UNetSkip", "UnboundAttention", "UnevenChunks", "WaveNet"),
    *("WindowedAttention", "YOLOHead"),
)
"""The modules of `architectures`, which can't be imported without PyTorch."""

SCRIPTED = (
    *("SumOfChunks", "UnrolledLSTM", "Windows", "ReversedChunks", "PairsOfChunks", "BestOfRows"),
)
"""Those that are compiled, with loops and lists."""


def export(name: str, exporter: str, opset: int, *, is_dynamic: bool) -> Case | None:
    """Export a module; return it with what PyTorch gives, or None if the exporter can't."""
    import torch

    from tests.model.convert.architectures import ARCHITECTURES

    make, shape = next(each for each in ARCHITECTURES.items() if each[0].__name__ == name)
    torch.manual_seed(0)
    module, file, options = make().eval(), io.BytesIO(), dict[str, Any]()
    if exporter == "script":
        module = torch.jit.script(module)
    if is_dynamic and exporter == "dynamo":
        options = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    elif is_dynamic:
        options = {"dynamic_axes": {"x": {0: "batch"}}}
    data = [torch.randn(shape)]
    data += [torch.randn(3, *shape[1:])] * is_dynamic
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        expected = [module(x) for x in data]
        try:
            torch.onnx.export(
                module,
                (data[0],),
                file,
                opset_version=opset,
                input_names=["x"],
                dynamo=exporter == "dynamo",
                verbose=False,
                **options,
            )
        except (torch.onnx.errors.OnnxExporterError, RuntimeError):
            return None
    made = onnx.load_from_string(file.getvalue())
    legal = []
    for x, found in zip(data, expected, strict=True):
        outputs = found if isinstance(found, tuple) else (found,)
        names = [entry.name for entry in made.graph.output]
        values = {n: y.numpy() for n, y in zip(names, outputs, strict=True)}
        legal.append(({"x": x.numpy()}, {"x": x.numpy(), **values}))
    return Case(made, legal, [], [], plain=[], tolerance=1e-4)


@pytest.mark.engine
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("exporter", ["ts", "dynamo"])
def test_an_architecture(name: str, exporter: str, request: pytest.FixtureRequest) -> None:
    for library in ("torch", "onnxscript", "onnxruntime", "openvino"):
        pytest.importorskip(library)
    number = request.config.getoption("seed") + NAMES.index(name)
    check_exports(name, exporter, number)


@pytest.mark.engine
@pytest.mark.parametrize("name", SCRIPTED)
def test_an_architecture_with_loops_and_lists(name: str, request: pytest.FixtureRequest) -> None:
    for library in ("torch", "onnxruntime", "openvino"):
        pytest.importorskip(library)
    check_exports(name, "script", request.config.getoption("seed") + SCRIPTED.index(name))


def check_exports(name: str, exporter: str, number: int) -> None:
    """Take the exports of a module through every tool and engine."""
    opsets = OPSETS[exporter]
    chosen = [opsets[number % 2]] if exporter == "dynamo" else opsets
    for place, opset in enumerate(chosen):
        case = export(name, exporter, opset, is_dynamic=bool((number // 2 + place) % 2))
        if case is None or not can_run(case, "onnxruntime"):
            continue  # at opset 9 TorchScript counts axes wrong
        case.opsets = [7 + (5 * number + 8 * place) % 20]
        for title, check in checks().items():
            try:
                check(case)
            except Exception as error:
                error.add_note(f"{title} of {name}, exported at opset {opset}")
                raise


def quantised(case: Case, number: int, folder: Path) -> Case:
    """Quantise an export by ONNX Runtime; return it with what that gives without its optimiser."""
    import onnxruntime
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    class Data(onnxruntime.quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter([feeds for feeds, _ in case.legal])

        def get_next(self) -> Any:
            return next(self._left, None)

    onnx.save(case.model, folder / "plain.onnx")
    small, signed = QuantType.QUInt8, QuantType.QInt8
    activations, weights = ((small, small), (small, signed), (signed, signed))[number % 3]
    quantize_static(
        *(folder / "plain.onnx", folder / "quantised.onnx", Data()),
        quant_format=QuantFormat.QDQ,
        activation_type=activations,
        weight_type=weights,
        per_channel=bool(number // 4 % 2),
        extra_options={"ActivationSymmetric": bool(number // 8 % 2)},
    )
    made = onnx.load(folder / "quantised.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    names = [entry.name for entry in made.graph.output]
    legal = [
        (feeds, {**feeds, **dict(zip(names, session.run(None, feeds), strict=True))})
        for feeds, _ in case.legal
    ]
    return Case(made, legal, [], [], plain=[], tolerance=0.25)  # steps differ by one at halves


@pytest.mark.thorough
@pytest.mark.engine
@pytest.mark.parametrize("name", [*NAMES, *SCRIPTED])
def test_an_architecture_that_is_quantised(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for library in ("torch", "onnxruntime.quantization", "openvino"):
        pytest.importorskip(library)
    number = request.config.getoption("seed") + (*NAMES, *SCRIPTED).index(name)
    for place, opset in enumerate((13, 21)):
        plain = export(name, "ts", opset, is_dynamic=bool((number + place) % 2))
        if plain is None or not can_run(plain, "onnxruntime"):
            continue
        case = quantised(plain, number + 5 * place, tmp_path)
        case.opsets = [13, 21]
        for title, check in checks().items():
            try:
                check(case)
            except Exception as error:
                error.add_note(f"{title} of {name}, exported at opset {opset}")
                raise


@pytest.mark.engine
@pytest.mark.parametrize("name", NAMES[::3])
def test_an_architecture_that_openvino_converts(name: str, tmp_path: Path) -> None:
    """An IR made of a module has no errors, runs as the module does, and what is inferred is so."""
    torch, openvino = pytest.importorskip("torch"), pytest.importorskip("openvino")
    from tests.model.convert.architectures import ARCHITECTURES

    make, shape = next(each for each in ARCHITECTURES.items() if each[0].__name__ == name)
    torch.manual_seed(0)
    module, data = make().eval(), torch.randn(shape)
    declared = [-1 if NAMES.index(name) % 2 else shape[0], *shape[1:]]
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        found = module(data)
        traced = torch.jit.trace(module, data, check_trace=False)
        made = openvino.convert_model(traced, example_input=data, input=[declared])
    expected = [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]
    openvino.save_model(made, tmp_path / "m.xml", compress_to_fp16=False)
    findings = ts.check(tmp_path / "m.xml", target="openvino")
    assert [each for each in findings if each.severity == "error"] == []
    for entry, wanted in zip(
        ts.infer_shapes(tmp_path / "m.xml").graph.output, expected, strict=True
    ):
        dims = entry.type.tensor_type.shape.dim
        known = [
            d.dim_value if d.HasField("dim_value") else size
            for d, size in zip(dims, wanted.shape, strict=True)
        ]
        assert known == list(wanted.shape)
    exact = {"EXECUTION_MODE_HINT": "ACCURACY"}  # else bfloat16 on processors that calculate in it
    compiled = openvino.Core().compile_model(tmp_path / "m.xml", "CPU", exact)
    got = compiled([data.numpy()])
    for index, wanted in enumerate(expected):
        np.testing.assert_allclose(got[index], wanted, rtol=1e-3, atol=1e-4)
