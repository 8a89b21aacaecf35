"""ONNX's backend interface: ``onnx.backend.test.BackendTest(tensorsplit.backend)`` and the like.

What runs is the engine ``tensorsplit``. onnx's checker is not called: it stops the whole process on
some split nodes (D5), and the model is checked here anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorsplit.core.extras import needs

with needs("models"):
    import onnx
    from onnx import helper
    from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from tensorsplit.core.errors import (
    MISSING_INPUT,
    UNKNOWN_ENGINE,
    UNKNOWN_INPUT,
    USAGE,
    SplitError,
    count_of,
    show,
    wrong_type,
)
from tensorsplit.core.given import as_list, is_a, is_mapping
from tensorsplit.core.records import NEWEST_OPSET
from tensorsplit.engines.engine_names import OURS
from tensorsplit.engines.sessions import Session
from tensorsplit.model.feeds import DeclaredInput, as_mapping
from tensorsplit.model.reading import OnnxModel, read_model

__all__ = [
    "TensorSplitBackend",
    "TensorSplitRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


_LARGEST_OPSET = 1 << 31


class TensorSplitRep(BackendRep):
    """A model that is ready to run.

    Args:
        model: The model; it is compiled once, for all runs.
    """

    def __init__(self, model: OnnxModel) -> None:
        self._session = Session(model, OURS)

    def run(self, inputs: object, **_kwargs: object) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: By name, or in the graph's order: arrays, lists of arrays for sequences, None
                for an empty optional. Inputs that have an initializer may be left out; in a
                sequence, either all of them are there or none.

        Returns:
            The outputs, in the graph's order and by name.

        Raises:
            SplitError: As `tensorsplit.run`.
        """
        outputs = self._session.run(_by_name(self._session.inputs, inputs))
        return namedtupledict("Outputs", list(outputs))(*outputs.values())


class TensorSplitBackend(Backend):
    """Our rules for the split operators, onnx's reference evaluator for all others."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_kwargs: object) -> TensorSplitRep:
        """Read a model and check that it is well-formed.

        Args:
            model: The model, as `tensorsplit.run` takes it.
            device: ``CPU``.

        Returns:
            What runs it. Split nodes are checked when it runs: a branch that is never taken may
            hold one that does not fit (AffineGrid's function body has one).

        Raises:
            SplitError: TS601 for another device; TS1xx to TS5xx for a model that is wrong.
        """
        if not cls.supports_device(device):
            raise SplitError(
                UNKNOWN_ENGINE, f"the device is {show(device)}", "use 'CPU'", parameter="device"
            )
        return TensorSplitRep(read_model(model))

    @classmethod
    def run_model(
        cls, model: object, inputs: object, device: str = "CPU", **kwargs: object
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once; see `prepare` and `TensorSplitRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: object,
        device: str = "CPU",
        outputs_info: Sequence[tuple[object, tuple[int, ...]]] | None = None,  # noqa: ARG003 - the name is of the interface
        **kwargs: object,
    ) -> tuple[Any, ...]:
        """Run one node.

        Args:
            node: The node.
            inputs: The inputs that it names, in order, or by name.
            device: ``CPU``.
            outputs_info: Not needed: the types and shapes are those that come out.
            **kwargs: ``opset_version`` is the opset to run at, the newest one if it is not given.

        Returns:
            The outputs that the node names, in order and by name.

        Raises:
            SplitError: As `tensorsplit.run`.
        """
        if not is_a(node, onnx.NodeProto):
            raise SplitError(USAGE, wrong_type(node), "give an onnx.NodeProto", parameter="node")
        opset = kwargs.pop("opset_version", None)
        names = [name for name in node.input if name]
        fed = as_mapping(inputs) if is_mapping(inputs) else _paired(names, inputs)
        return cls.run_model(_model_of(node, opset, fed), fed, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether the device is a CPU: ``CPU`` or, say, ``CPU:0``."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False


def _by_name(declared: Sequence[DeclaredInput], inputs: object) -> Any:
    if is_mapping(inputs):
        return inputs
    names = [entry.name for entry in declared]
    required = [entry.name for entry in declared if not entry.has_default]
    listed = as_list(inputs)
    takes_all = listed is not None and len(listed) != len(required)
    return _paired(names if takes_all else required, inputs)


def _paired(names: Sequence[str], inputs: object) -> dict[str, object]:
    listed = as_list(inputs)
    if listed is None:
        raise SplitError(
            USAGE,
            f"it is of type {type(inputs).__name__}",
            "give a list of inputs, or a mapping from their names",
            parameter="inputs",
        )
    count = len(listed)
    if count != len(names):
        raise SplitError(
            MISSING_INPUT if count < len(names) else UNKNOWN_INPUT,
            f"it is {count_of(count, 'input')}",
            f"give {len(names)}: {', '.join(map(show, names)) or 'none'}",
            parameter="inputs",
        )
    return dict(zip(names, listed, strict=True))


def _model_of(node: Any, opset: object, fed: Mapping[Any, object]) -> onnx.ModelProto:
    """Return a model of one node, of which nothing is declared that the node does not need."""
    if opset is not None and (type(opset) is not int or abs(opset) > _LARGEST_OPSET):
        raise SplitError(
            USAGE, f"it is {show(opset)}", "give the number of an opset", parameter="opset_version"
        )
    unnamed = next((name for name in fed if not is_a(name, str)), None)
    if unnamed is not None:
        problem = f"the model has no input {show(unnamed)}"
        raise SplitError(UNKNOWN_INPUT, problem, "give strings as names", parameter="inputs")
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    graph = helper.make_graph(
        [node],
        "node",
        [onnx.ValueInfoProto(name=name, type=_type_of(value)) for name, value in fed.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    imports = [helper.make_opsetid("", newest if opset is None else opset)]
    if node.domain not in ("", "ai.onnx"):
        imports.append(helper.make_opsetid(node.domain, 1))
    return helper.make_model(graph, opset_imports=imports)


def _type_of(value: object) -> onnx.TypeProto:
    anything = onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor())
    if is_a(value, (list, tuple)):
        return helper.make_sequence_type_proto(anything)
    return helper.make_optional_type_proto(anything) if value is None else anything


is_compatible = TensorSplitBackend.is_compatible
prepare = TensorSplitBackend.prepare
run_model = TensorSplitBackend.run_model
run_node = TensorSplitBackend.run_node
supports_device = TensorSplitBackend.supports_device


def __dir__() -> list[str]:
    return [*__all__]
