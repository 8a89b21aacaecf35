"""Cases as files, in the layout of ONNX's backend tests, for any runtime's own test runner."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from onnx import numpy_helper

from tensorsplit.conformance.case import Case
from tensorsplit.storage.outputs import Outputs
from tensorsplit.storage.syncing import sync_files

MANIFEST = "manifest.json"
_NAMES = ("parts", "refusal", "ir", MANIFEST)


def export(
    cases: Sequence[Case],
    folder: Path,
    outputs: Outputs,
    seed: int = 0,
    *,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write cases into a folder, whole or not at all.

    Each case has a folder of its own: ``parts/test_*`` for ONNX models that run, ``refusal/test_*``
    for those that are to be refused and so have no outputs, ``ir/test_*`` for OpenVINO IR. In it
    are ``model.onnx`` (or ``model.xml`` and ``model.bin``), ``test_data_set_0/input_0.pb``,
    ``output_0.pb`` and so on, a ``SequenceProto`` where it is a sequence, and a ``data.json`` that
    asks for exact equality. ``manifest.json`` lists which folder holds which case and what is
    expected of it.

    `outputs` says whether it may replace cases that are there, and `progress` is called after each
    case.

    Raises:
        SplitError: TS702 if the folder can't be written or may not be replaced; nothing is left
            then.
    """
    with outputs.replaced(folder, _NAMES) as draft:
        draft.mkdir()
        _write(cases, draft, seed, progress)
        sync_files(path for path in draft.rglob("*") if path.is_file())


def directory(case: Case) -> str:
    """Return a case's place in the folder; no id holds two underscores, so each is unique."""
    kind = case.expects if case.model_format == "onnx" else case.model_format
    return f"{kind}/test_{case.id.replace('/', '__')}"


def _write(
    cases: Iterable[Case], folder: Path, seed: int, progress: Callable[[int], object] | None
) -> None:
    entries = []
    for case in cases:
        built = case.build(seed)
        place = folder / directory(case)
        data = place / "test_data_set_0"
        data.mkdir(parents=True)
        if case.model_format == "ir":
            (place / "model.xml").write_bytes(built.model)
            (place / "model.bin").write_bytes(built.weights)
        else:
            (place / "model.onnx").write_bytes(built.model)
            (place / "data.json").write_text('{"rtol": 0, "atol": 0}\n', encoding="utf-8")
        for kind, values in (("input", built.inputs), ("output", built.expected or {})):
            for number, (name, value) in enumerate(values.items()):
                is_sequence = isinstance(value, list)
                to_proto = numpy_helper.from_list if is_sequence else numpy_helper.from_array
                octets = to_proto(value, name).SerializeToString(deterministic=True)
                (data / f"{kind}_{number}.pb").write_bytes(octets)
        entry = {name: value for name, value in asdict(case.info).items() if name != "cut"}
        entry |= {"directory": directory(case), "inputs": list(built.inputs)}
        outputs = None if built.expected is None else list(built.expected)
        entries.append({**entry, "outputs": outputs})
        if progress is not None:
            progress(1)
    manifest = {
        "suite": "tensorsplit conformance",
        "version": metadata.version("tensorsplit"),
        "seed": seed,
        "cases": entries,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
