"""What holds of every OpenVINO IR, whatever tool it goes through.

What our own engine gives is the measure: it has to be what the program gives that the IR was made
of, and OpenVINO has to give it, unless `check` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.engines import adapters
from tests.model.programs import Program
from tests.model.random_checks import (
    Feeds,
    Wrong,
    bind,
    check_declared,
    compare,
    data_of,
    in_a_child,
    quietly,
)

LACKING = {"TS101", "TS310", "TS509", "TS512", "TS513", "TS514"}
"""What we say of a model with a layer that we can't express in ONNX, or run."""
OPSET = 21
"""The opset at which our own engine runs an IR."""


@dataclass
class IrCase:
    """An IR, its feeds, and all values that come of each; None where a split refuses it.

    Attributes:
        is_converted: Whether OpenVINO made it of an ONNX model, which it may take for another one.
    """

    xml: bytes
    weights: bytes
    outputs: Sequence[str]
    feeds: Sequence[tuple[Feeds, Feeds | None]]
    is_converted: bool
    is_careful: bool = False  # whether OpenVINO runs in children
    program: Program | None = None
    tolerance: float = 1e-3
    taken: dict[str, int] = field(default_factory=dict)

    @property
    def legal(self) -> Sequence[Feeds]:
        """The data that is legal."""
        return [fed for fed, values in self.feeds if values is not None]

    @property
    def illegal(self) -> Sequence[Feeds]:
        """The data that is refused."""
        return [fed for fed, values in self.feeds if values is None]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is calculated, and the program: its functions can't be pickled."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"program": None}

    @cached_property
    def folder(self) -> Path:
        """Where the file lies, and those that are made of it."""
        self._kept = TemporaryDirectory(prefix="random-ir-")
        folder = Path(self._kept.name)
        (folder / "model.xml").write_bytes(self.xml)
        (folder / "model.bin").write_bytes(self.weights)
        return folder

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "model.xml"

    def contents(self) -> bytes:
        """Return what the files hold, which no tool may change."""
        return self.path.read_bytes() + self.path.with_suffix(".bin").read_bytes()

    @cached_property
    def ours(self) -> list[Feeds | None] | None:
        """What our own engine gives for each of the feeds; None if it lacks a layer."""
        try:
            model = quietly(ts.convert, self.path, opset=OPSET)
            with ts.session(model, engine="tensorsplit") as session:
                return [self._given(session, fed) for fed, _ in self.feeds]
        except SplitError as error:
            if "report" in str(error):
                raise
            return None if error.code in LACKING else [None] * len(self.feeds)

    def _given(self, session: ts.Session, fed: Feeds) -> Feeds | None:
        try:
            return dict(zip(self.outputs, session.run(fed).values(), strict=True))
        except SplitError as error:
            if error.code in LACKING or "report" in str(error):
                raise
            return None

    @cached_property
    def wanted(self) -> list[tuple[Feeds, Feeds | None]]:
        """The feeds, with what OpenVINO should give for each; of most, what we give.

        What we refuse of an IR that was taken for another model need not be refused by OpenVINO.
        """
        if self.ours is None:
            return [] if self.is_converted else list(self.feeds)
        return [
            (fed, given)
            for (fed, values), given in zip(self.feeds, self.ours, strict=True)
            if given is not None or values is None or not self.is_converted
        ]

    @cached_property
    def fault(self) -> str:
        """What OpenVINO does wrongly with the IR as it is, on data that is legal."""
        return self.fault_of(self.path, [each for each in self.wanted if each[1] is not None])

    def fault_of(self, path: Path, wanted: Sequence[tuple[Feeds, Feeds | None]]) -> str:
        """Run a file in OpenVINO; return what it does wrongly first, or nothing."""
        try:
            if self.is_careful:
                in_a_child(run_file, self, path, wanted)
            else:
                run_file(self, path, wanted)
        except Exception as error:  # noqa: BLE001 - it is the answer
            return str(error) or type(error).__name__
        return ""


def run_file(case: IrCase, path: Path, wanted: Sequence[tuple[Feeds, Feeds | None]]) -> None:
    """Raise Wrong unless OpenVINO gives what is wanted, and refuses where nothing is."""
    run = adapters.load_openvino(str(path), b"")
    for fed, values in wanted:
        try:
            given = run(fed, case.outputs)
        except Exception:
            if values is None:
                continue
            raise
        if values is None:
            raise Wrong("illegal data was not refused")
        compare(given, values, case)


def findings(path: Path) -> dict[str, list[str]]:
    """Return what `check` finds for OpenVINO, by severity."""
    found: dict[str, list[str]] = {"error": [], "warning": [], "note": []}
    for each in ts.check(path, target="openvino"):
        found[each.severity].append(str(each))
    return found


def case_of(
    program: Program, seed: int = 0, *, is_converted: bool = False, is_careful: bool = False
) -> IrCase | None:
    """Make the IR of a program of layers, or of one of ONNX; None where OpenVINO does not."""
    from tests.model.openvino_ir import writing

    with TemporaryDirectory(prefix="random-ir-") as folder:
        path = Path(folder, "model.xml")
        try:
            write = writing.convert if is_converted else writing.save
            names = write(program, path, seed)
        except Exception:  # noqa: BLE001 - it does not read all models
            return None
        legal, illegal = data_of(program)
        feeds = [each for each in (*legal, *((fed, None) for fed in illegal)) if is_kept(each[0])]
        return IrCase(
            path.read_bytes(),
            path.with_suffix(".bin").read_bytes(),
            program.graph.outputs,
            [({name: fed[name] for name in fed if name in names}, given) for fed, given in feeds],
            is_converted=is_converted,
            is_careful=is_careful,
            program=program,
        )


def is_kept(fed: Feeds) -> bool:
    """Whether OpenVINO keeps all integers that are fed, which it cuts to 32 bits (D16)."""
    wide = (value for value in fed.values() if value.dtype in (np.int64, np.uint64))
    return all((value == value.astype(np.int32)).all() for value in wide)


# The checks


def check_run(case: IrCase) -> None:
    """Our own engine gives the values and refuses what is illegal.

    It may differ where OpenVINO took an ONNX model for what gives something else there, too.
    """
    case.taken["run"] = int(case.ours is not None)
    for (fed, values), given in zip(case.feeds, case.ours or (), strict=False):
        try:
            if values is None and given is not None:
                raise Wrong("illegal data was not refused")
            if values is not None and given is None:
                raise Wrong("legal data was refused")
            if values is not None and given is not None:
                compare(given, values, case)
        except Wrong:
            if not case.is_converted or (
                values is not None
                and not findings(case.path)["warning"]
                and not case.fault_of(case.path, [(fed, values)])
            ):
                raise


def check_check(case: IrCase) -> None:
    """What has no error runs, what has no warning gives the same, what has an error does not."""
    found = findings(case.path)
    if not any(values for _, values in case.wanted):
        return
    if found["error"] and not case.fault:
        raise Wrong(f"finding: {found['error'][0]}")
    if case.fault and not found["error"] and not found["warning"]:
        raise Wrong(f"nothing was found: {case.fault}")
    case.taken["right" if not case.fault else "wrong, which check says"] = 1


def check_infer(case: IrCase) -> None:
    """What is inferred is so for all legal data."""
    if not any(values for _, values in case.wanted):
        return
    inferred = quietly(ts.infer_shapes, case.path)
    for fed, values in case.wanted:
        if values is None:
            continue
        symbols: dict[str, int] = {}
        for entry in inferred.graph.input:
            bind(entry, fed[entry.name], symbols)
        for name, entry in zip(case.outputs, inferred.graph.output, strict=True):
            check_declared(entry, values[name], symbols)


def check_lower(case: IrCase) -> None:
    """Lowered, it has no errors, stays as it is, and OpenVINO gives what is wanted."""
    try:
        quietly(ts.lower, case.path, target="openvino").save(case.folder / "low.xml")
    except SplitError as error:
        if "report" in str(error):
            raise
        is_right = not case.fault and all(values is not None for _, values in case.wanted)
        if is_right and not findings(case.path)["warning"]:
            raise Wrong(f"lower refuses what runs: {error}") from error
        return
    low = case.folder / "low.xml"
    again = quietly(ts.lower, low, target="openvino")
    if (again.text, again.added) != (low.read_bytes(), b""):
        raise Wrong("lowered twice: something changed again")
    found = findings(low)
    if found["error"]:
        raise Wrong(f"lowered, finding: {found['error'][0]}")
    fault = case.fault_of(low, case.wanted)
    if "signal" in fault and fault == case.fault_of(case.path, case.wanted):
        return  # by data that is wrong for other layers, too
    if fault and not (case.fault and (found["warning"] or findings(case.path)["warning"])):
        raise Wrong(f"lowered: {fault}")
    case.taken["lowered, right"] = int(not fault)


CHECKS: dict[str, Callable[[IrCase], Any]] = {
    "run": check_run,
    "check": check_check,
    "infer": check_infer,
    "lower": check_lower,
}
