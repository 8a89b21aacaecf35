"""Running a model in another engine, after everything that could harm the engine was refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import ENGINE_REFUSED, EXTERNAL_DATA, SEQUENCE_INDEX, SplitError
from tensorsplit.engines.engine_names import READS_IR
from tensorsplit.engines.loaded import LoadedHere, LoadedModel
from tensorsplit.engines.process import process_of
from tensorsplit.model.feeds import check_feeds
from tensorsplit.model.graph.calls import check_expanded
from tensorsplit.model.graph.message import copied, tensors_outside, with_data_inside
from tensorsplit.model.graph.tensors import check_external
from tensorsplit.model.graph.weights import MAX_MESSAGE
from tensorsplit.model.infer.validation import Validator, values_needed
from tensorsplit.model.lower import LoweredIr
from tensorsplit.model.reading import OnnxModel
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import compile_model

if TYPE_CHECKING:
    from tensorsplit.engines.adapters import Outputs

_PROBE = "tensorsplit.engines.openvino_probe"

_MOST_EVALUATIONS = 1_024
"""So many tries find what can be calculated beside some hundred values that can't be."""


class OutsideModel:
    """A model in any engine but ``tensorsplit``, loaded once; refusals as of `engines.run`.

    An engine loads the model with the first run, once what is fed was checked: loading one with
    wrong lengths may crash it.

    Args:
        engine: The engine.
        model: What is checked.
        lowered: What the engine runs in its place; the same, or lowered for the engine.
        is_isolated: Whether the engine has a process of its own.
    """

    def __init__(
        self, engine: str, model: OnnxModel, lowered: OnnxModel | LoweredIr, *, is_isolated: bool
    ) -> None:
        if model.openvino is not None and engine != READS_IR:
            raise SplitError(
                ENGINE_REFUSED,
                f"{engine} reads no OpenVINO IR",
                "use engine='tensorsplit' or 'openvino'",
                parameter="engine",
            )
        self._engine, self._model, self._lowered = engine, model, lowered
        self._is_isolated = is_isolated
        self._block = compile_model(model)
        if model.openvino is None:
            check_expanded(
                model.model, "use engine='tensorsplit', which runs each function as it is"
            )
        self.validator = Validator(model.model)
        self._loaded: dict[object, LoadedModel | LoadedHere] = {}

    def run(self, inputs: Mapping[str, object]) -> Outputs:
        """Run the model on what `check_feeds` takes, after all that could harm the engine."""
        feeds = check_feeds(self._model.inputs, inputs)
        undecided = self._check(feeds)
        loaded = self._load(feeds, is_undecided=undecided)
        fed = {name: _plain(value) for name, value in feeds.items()}
        outputs: Outputs = loaded(fed, self._model.output_names)
        has_process = self._is_isolated and self._engine == READS_IR
        if has_process and _has_strings([*fed.values(), *outputs.values()]):
            process_of(READS_IR).close()  # D17: a corrupt heap, which no other run must meet
        return outputs

    def close(self) -> None:
        """Tell the engine to forget the model."""
        for loaded in self._loaded.values():
            loaded.close()
        self._loaded.clear()

    def _check(self, feeds: Mapping[str, object]) -> bool:
        """Refuse wrong split nodes and positions; returns whether what is fed left any undecided.

        Where lengths, or positions in sequences, can't be known otherwise, the nodes that compute
        them run here, by the engine ``tensorsplit``. What only the evaluator of the other operators
        refuses is left to the engine.
        """
        facts = self.validator.check(feeds)
        if self._model.openvino is not None:
            return bool(facts.undecided)
        known: dict[str, object] = {}
        is_undecided, tries = False, iter(range(_MOST_EVALUATIONS))
        for whole in (False, True):
            needed = values_needed(facts, whole=whole)
            if not needed:
                break
            is_undecided = True
            known |= self._evaluated(feeds, needed, tries)
            facts = self.validator.check(feeds, known)
        return is_undecided

    def _evaluated(
        self, feeds: Mapping[str, object], needed: Sequence[ir.Value], tries: Iterator[int]
    ) -> dict[str, object]:
        """Return the values by name, but for those that the evaluator refuses to calculate.

        Where it refuses some of many, the halves are tried, and their halves, while tries are left.
        """
        known, waiting = dict[str, object](), deque([needed])
        while waiting and next(tries, None) is not None:
            part = waiting.popleft()
            try:
                known |= evaluate(self._block, feeds, part)
            except SplitError as error:
                if error.code < "TS4" or error.kind is SEQUENCE_INDEX:
                    raise
                half = len(part) // 2
                waiting.extend((part[:half], part[half:]) if half else ())
        return known

    def _load(self, feeds: Mapping[str, object], *, is_undecided: bool) -> LoadedModel | LoadedHere:
        """Return the model in the engine, as these inputs need it."""
        is_ir, is_openvino = self._model.openvino is not None, self._engine == READS_IR
        is_guarded, replaced = is_undecided and is_openvino, frozenset[str]()
        if is_openvino:  # which would keep the defaults (D20)
            defaults = {entry.name for entry in self._model.inputs if entry.has_default}
            replaced = frozenset(defaults.intersection(feeds))
        key = is_guarded, replaced
        if key not in self._loaded:
            content, weights = self._content(replaced)
            loader = f"tensorsplit.engines.adapters:load_{self._engine.replace('-', '_')}"
            if is_guarded:
                loader = f"{_PROBE}:{'load' if is_ir else 'load_guarded'}"
            arguments = content, weights
            self._loaded[key] = (
                LoadedModel(process_of(self._engine), loader, arguments)
                if self._is_isolated
                else LoadedHere(self._engine, loader, arguments)
            )
        return self._loaded[key]

    def _content(self, replaced: Set[str]) -> tuple[str | bytes, bytes]:
        """Return the input of the engine: the path of a file, or its content; an IR has weights."""
        lowered = self._lowered
        if isinstance(lowered, LoweredIr):
            weights = BytesIO()
            lowered.write_weights(weights)
            return lowered.text, weights.getvalue()
        if self._model.openvino is not None:
            return str((self._model.path or Path()).absolute()), b""
        return _content(lowered, replaced), b""


def _content(model: OnnxModel, replaced: Set[str]) -> str | bytes:
    """Return the input of the engine: the path of the model's file, or its bytes with all data.

    Without the defaults that are replaced by what is fed.
    """
    # A link stays one: the data that was checked lies beside it.
    proto, path = model.original, None if model.path is None else model.path.absolute()
    if replaced:
        proto, path = copied(proto), None
        kept = [tensor for tensor in proto.graph.initializer if tensor.name not in replaced]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
    outside = list(tensors_outside(proto))
    if path is not None and path.suffix == ".onnx":
        for tensor in outside:
            check_external(tensor, model.folder)
        return str(path)
    if outside:
        proto = with_data_inside(proto, model.folder)
    size = proto.ByteSize()
    if size > MAX_MESSAGE:
        raise SplitError(
            EXTERNAL_DATA,
            f"the model has {size} bytes together with its external data, more than the 2 GiB"
            " that can be passed on",
            "save it as an .onnx file, and give its path",
        )
    return bytes(proto.SerializeToString())


def _plain(value: object) -> object:
    """Return a value as every engine takes it: strings as ``str`` objects."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, np.ndarray) or element_type(value) != "string":
        return value
    plain = np.empty(value.size, object)
    plain[:] = [
        item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
        for item in value.reshape(-1).tolist()
    ]
    return plain.reshape(value.shape)


def _has_strings(values: list[Any]) -> bool:
    return any(isinstance(value, np.ndarray) and value.dtype.hasobject for value in values)
