"""Lowering an OpenVINO IR: its split layers, so that OpenVINO runs them right or refuses.

Layers other than splits are changed too, where OpenVINO would give wrong elements.

A layer that OpenVINO runs right stays as it is, byte for byte. Lengths that only the running model
knows are checked by layers that calculate what the layer gets in their place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from xml.etree.ElementTree import Element

import onnx_ir as ir

from tensorsplit.arrays import as_switch
from tensorsplit.core.arithmetic import Formula, Number, Numbers, bounds, dimension, value
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import CANNOT_LOWER, EXTERNAL_DATA, USAGE, SplitError, wrong_type
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import Chunks
from tensorsplit.model.data_files import pieces_of
from tensorsplit.model.features import data_features, layer_features
from tensorsplit.model.features.split_features import known_lengths
from tensorsplit.model.graph.checked_lengths import axis_of, checked_lengths, equal_lengths
from tensorsplit.model.graph.nodes import NodeRef, bodies, walk
from tensorsplit.model.graph.rejoined import is_rejoined
from tensorsplit.model.graph.split_records import is_vendor_split
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.splits import length_of_axis
from tensorsplit.model.lower.other_layers import OTHER_LAYERS, Graphs, change_layer
from tensorsplit.model.lower.state import LoweredNode, LoweringReport, at, refusal
from tensorsplit.model.openvino_ir import LAYER_PATH
from tensorsplit.model.openvino_ir.editing import EditedGraph, EditedIr, LayerMaker
from tensorsplit.model.openvino_ir.layer_types import VARIADIC_SPLIT
from tensorsplit.model.openvino_ir.layers import layers_of, read_octets
from tensorsplit.model.profiles import Profile, load, must_go
from tensorsplit.model.reading import OnnxModel, read_model
from tensorsplit.model.validity.model_errors import check_well_formed
from tensorsplit.storage.outputs import Content, Outputs

_TYPE_FEATURES = ("element_type", "packed_constant")
"""Features of data for which checked lengths do not help."""


@dataclass(frozen=True)
class LoweredIr:
    """An OpenVINO IR that was lowered; `save` writes it.

    Attributes:
        text: What its ``.xml`` holds.
        source: The ``.xml`` that was read.
        weights: The ``.bin`` that was read; None if there is none.
        size: How long that is.
        added: What follows it in the new ``.bin``.
    """

    text: bytes
    source: Path
    weights: Path | None
    size: int
    added: bytes

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the ``.xml`` and its ``.bin``, both whole or neither.

        Args:
            path: The path of the ``.xml``; the ``.bin`` is written beside it.
            overwrite: Whether to replace files that are there; those that were read never are.

        Raises:
            SplitError: TS702 if one of the two may not be written, or can't be; TS703 if `path` has
                another suffix, or `overwrite` is neither True nor False; TS504 if the ``.bin`` that
                was read has changed, or can't be read.
        """
        given: object = path
        target = Path(os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else "")
        if target.suffix.lower() != ".xml":
            problem, fix = wrong_type(path), "give the path of an .xml, beside which goes its .bin"
            raise SplitError(USAGE, problem, fix, parameter="path")
        is_overwritten = as_switch(overwrite, "overwrite")
        reads = [self.source] + ([] if self.weights is None else [self.weights])
        Outputs(reads=reads, overwrite=is_overwritten).write(self.files(target))

    def files(self, path: Path) -> dict[Path, Content]:
        """Return the content of the ``.xml`` and the other files, for a path of the ``.xml``."""
        if self.weights is None and not self.added:
            return {path: self.text}
        return {path: self.text, path.with_suffix(".bin"): self.write_weights}

    @contextmanager
    def reread(self) -> Iterator[OnnxModel]:
        """Write it to files that are removed afterwards, and read it."""
        with TemporaryDirectory(prefix="tensorsplit-") as folder:
            path = Path(folder, "lowered.xml")
            self.save(path)
            yield read_model(path, without_weights=True)

    def write_weights(self, file: IO[bytes]) -> None:
        """Write the content of the ``.bin``; TS504 if the file that was read has changed."""
        if self.weights is not None:
            for piece in pieces_of(self.weights):
                file.write(piece)
        if file.tell() != self.size:
            problem = f"{self.source.with_suffix('.bin').name} has changed while it was read"
            raise SplitError(EXTERNAL_DATA, problem, "lower the model again")
        file.write(self.added)


def lower_ir(opened: OnnxModel, target: str | os.PathLike[str]) -> tuple[LoweredIr, LoweringReport]:
    """Lower the split layers of an IR.

    Raises:
        SplitError: As `lower`; TS513 also for a target that reads no IR.
    """
    profile = load(target)
    if problem := profile.problem_with_irs():
        raise refusal(problem, "convert it: tensorsplit convert MODEL.xml --opset 18 -o MODEL.onnx")
    check_well_formed(opened.model)
    lowering = _IrLowering(opened, profile)
    lowering.run()
    return lowering.made(), lowering.report


class _IrLowering:
    """The lowering of one IR."""

    def __init__(self, opened: OnnxModel, profile: Profile) -> None:
        assert opened.path is not None  # noqa: S101 - an IR comes from a file
        assert opened.openvino is not None  # noqa: S101 - see the caller
        self._path, self._model, self._profile = opened.path, opened.model, profile
        held = opened.openvino.weights
        self._weights = held if held.exists() else None
        self._size = 0 if self._weights is None else self._weights.stat().st_size
        self._file = EditedIr(read_octets(self._path), self._path, self._size)
        self._graphs: Graphs = dict(_graphs(self._model.graph, self._file, self._file.root))
        self._facts = analyse(self._model, strict=True)
        self.report = LoweringReport(profile.name)

    def made(self) -> LoweredIr:
        """Return the result."""
        text, added = self._file.text(), self._file.added
        return LoweredIr(text, self._path, self._weights, self._size, added)

    def run(self) -> None:
        """Lower each layer that has to be, in order."""
        refs = list(walk(self._model))
        for entry in self._profile.about(
            data_features(refs, self._facts, self._model.graph.inputs)
        ):
            self.report.note_limitation(entry)
        for ref in refs:
            with at(ref):
                self._lower(ref)
        for graph in self._graphs.values():
            graph.finish()

    def _lower(self, ref: NodeRef) -> None:
        entries = list(self._profile.about(layer_features(ref, self._facts)))
        is_split = is_vendor_split(ref.node)
        reasons = [
            each for each in entries if must_go(each) and (is_split or each.feature in OTHER_LAYERS)
        ]
        for entry in entries:
            if entry not in reasons and not is_split and entry.extent == "all":
                raise refusal(entry.note, "use another engine")
            if entry not in reasons:
                self.report.note_limitation(entry)
        if not reasons:
            return
        if not self._file.takes_text:
            problem, fix = "the file is not in an encoding as UTF-8", "save it as UTF-8"
            raise refusal(problem, fix)
        text = "; ".join(dict.fromkeys(map(self._profile.sentence, reasons)))
        graph = self._graph_of(ref)
        others = [OTHER_LAYERS[each.feature] for each in reasons if each.feature in OTHER_LAYERS]
        for change, became in dict.fromkeys(others):
            change_layer(change, ref, self._graphs, self._facts)
            self.report.changes.append(LoweredNode(ref.path, ref.op_type, became, text))
        if others:
            return
        split = _LayerSplit(ref, graph, self._facts)
        by_type = [entry for entry in reasons if entry.feature in _TYPE_FEATURES]
        if not by_type:
            split.check_lengths()
            became = "VariadicSplit with checked lengths"
        elif split.has_strings:
            split.take_strings()
            became = "Gather"
        else:
            raise refusal(by_type[0].note, "use another element type, or another engine")
        self.report.changes.append(LoweredNode(ref.path, ref.op_type, became, text))
        for entry in self._profile.about({"runtime_checks": True}):
            self.report.note_limitation(entry)

    def _graph_of(self, ref: NodeRef) -> EditedGraph:
        graph = self._graphs.get(ref.node.graph) if isinstance(ref.node.graph, ir.Graph) else None
        if graph is None or ref.path not in graph.layers:
            problem = "the file has changed while it was read"
            raise SplitError(CANNOT_LOWER, problem, "lower it again")
        return graph


def _graphs(
    graph: ir.Graph, file: EditedIr, element: Element, around: str = "", depth: int = 0
) -> Iterator[tuple[ir.Graph, EditedGraph]]:
    """Yield a graph and those in it, each with what may be edited of it."""
    edited = EditedGraph(file, element, layers_of(element, around, depth))
    yield graph, edited
    for node in graph:
        layer = edited.layers.get(str(node.metadata_props.get(LAYER_PATH)))
        for label, body in bodies(node):
            inner = None if layer is None else layer.element.find(label)
            if layer is not None and inner is not None:
                yield from _graphs(body, file, inner, f"{layer.path} / ", depth + 1)


class _LayerSplit:
    """A split layer, and what replaces it or what feeds it."""

    def __init__(self, ref: NodeRef, graph: EditedGraph, facts: Facts) -> None:
        self._graph, self._layer, self._ref = graph, graph.layers[ref.path], ref
        self._intent: Intent = facts.split(ref).require_intent()
        self._types = [facts.tensor(each).element_type for each in ref.node.inputs]
        self._name = self._layer.name or self._layer.type
        self._make = LayerMaker(graph, self._name)
        self._data = graph.source(self._layer, 0)
        held = value(graph.source(self._layer, 1))
        given = held if self._types[1] == ir.DataType.INT64 else Formula("int64", held)
        self._axis = axis_of(self._intent, self._data, given)
        dim = length_of_axis(self._intent, facts.tensor(ref.input(0)))
        self._dim: Number = dim if is_known(dim) else dimension(self._data, self._axis)

    @property
    def has_strings(self) -> bool:
        """Whether the data is strings."""
        return self._types[0] == ir.DataType.STRING

    def check_lengths(self) -> None:
        """Feed the layer lengths that were checked; one without lengths becomes another one."""
        if self._intent.operator.lengths[0].kind == "attribute":
            self._replace_by_lengths()
            return
        has_more = is_rejoined(self._ref.node, self._ref.owners)
        lengths = self._checked(has_more=has_more)
        self._graph.feed(self._layer, 2, self._make.make(lengths))
        if has_more:
            self._graph.add_output(self._layer)

    def _replace_by_lengths(self) -> None:
        ports = list(self._layer.outputs.values())
        lengths = equal_lengths(self._dim, len(ports))
        inputs = [self._data, self._graph.source(self._layer, 1), self._make.make(lengths)]
        kind = VARIADIC_SPLIT._replace(precision=ports[0].precision)
        made = self._graph.add_with_outputs(kind, inputs, self._name, len(ports) + 1)
        self._graph.stand_in(self._layer, made[:-1])

    def take_strings(self) -> None:
        """Take the strings of each part one by one."""
        intent, given = self._intent, known_lengths(self._intent)
        if given is None or intent.rule is None:
            lengths: Numbers | Chunks = self._checked()
        else:
            lengths = intent.rule(self._dim, given)
        assert not isinstance(lengths, Chunks)  # noqa: S101 - no layer gives a sequence
        count = intent.outputs or 0
        limits = bounds(self._dim, lengths, count, are_checked=given is None)
        ends = [self._make.strings(self._data, start, end, self._axis) for start, end in limits]
        self._graph.stand_in(self._layer, ends)

    def _checked(self, *, has_more: bool = False) -> Formula:
        """Return the lengths that the layer gets, with a check."""
        source = self._graph.source(self._layer, 2)
        if self._types[2] != ir.DataType.INT64:
            source = self._make.apply("int64", [source])
        return checked_lengths(self._intent, self._dim, source, has_more=has_more)
