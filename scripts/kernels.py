"""Write the kernels of the ONNX Runtime that is installed into its profile, each one tried.

``python scripts/kernels.py`` asks the engine which versions and element types each of its kernels
on the CPU is for, and then has it load a node of each operator, version and type of the standard:
what it loads though no kernel is for it is added. An operator with a function body is tried at each
opset, because the engine takes that body at some of them only; it may be of any types if its
operands have several, of which not each pair is tried.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from onnx import AttributeProto, ModelProto, TensorProto, defs, helper
from onnxruntime.capi import onnxruntime_pybind11_state as engine

from tensorsplit.model.check.engine_kernels import OPEN, Kernel, kernel_of, takes

PROFILES = Path(__file__).parents[1] / "src" / "tensorsplit" / "model" / "profiles"
PROVIDER = "CPUExecutionProvider"
NO_KERNEL = ("Could not find an implementation", "Failed to find kernel")
LEFT = {"Constant", "If", "Loop", "Scan", "Split", "SplitToSequence"}
"""Operators without a kernel, with bodies, or of which the profile says more."""

TYPES = {name.lower(): number for name, number in TensorProto.DataType.items()}
USUAL = ("float", "int64", "bool", "string")
VALUES = {
    AttributeProto.INT: 1,
    AttributeProto.INTS: [1],
    AttributeProto.FLOAT: 1.0,
    AttributeProto.FLOATS: [1.0],
    AttributeProto.STRING: "a",
    AttributeProto.STRINGS: ["a"],
}

Types = Mapping[str, frozenset[str]]


def tensors(names: Any) -> frozenset[str]:
    """The element types in a list of types; float16 is cast where there is a kernel of float."""
    found = {name[7:-1] for name in map(str, names) if name.startswith("tensor(")}
    return frozenset(found | ({"float16"} if "float" in found else set()))


def kernels() -> dict[tuple[str, int, int], list[Types]]:
    """The element types of each kernel, by operator and versions."""
    found: dict[tuple[str, int, int], list[Types]] = defaultdict(list)
    for each in engine.get_all_opkernel_def():
        if each.provider == PROVIDER and not each.domain and each.op_name not in LEFT:
            held = {name: tensors(types) for name, types in each.type_constraints.items()}
            taken = {name: types for name, types in held.items() if types}
            found[each.op_name, *each.version_range].append(taken)
    return found


def merged(held: list[Types]) -> list[Types]:
    """The same in one, if it is for each type of a parameter with each of the others."""
    names = [*held[0]]
    if any(each.keys() != held[0].keys() for each in held):
        return held
    every = {name: frozenset[str]().union(*(each[name] for each in held)) for name in names}

    def ways(types: Types) -> set[tuple[str, ...]]:
        return set(itertools.product(*(types[name] for name in names)))

    return [every] if set().union(*map(ways, held)) == ways(every) else held


def line(first: int, last: int, held: Types, opsets: str = "") -> str:
    """A line of a profile."""
    types = "; ".join(f"{name}: {' '.join(sorted(types))}" for name, types in sorted(held.items()))
    return f"{first}-{'' if last == OPEN else last}{opsets} {types}".strip()


def model(schema: Any, parameter: str, kind: str) -> tuple[Types, ModelProto] | None:
    """A node of an operator version, one of whose parameters is of a type; None if none is made."""
    types: dict[str, frozenset[str]] = {}
    elements = []
    for place in range(max(schema.min_input, min(schema.max_input, 1))):
        given = schema.inputs[min(place, len(schema.inputs) - 1)]
        allowed = tensors(given.types)
        usual = next((each for each in USUAL if each in allowed), min(allowed, default=""))
        element = kind if given.type_str == parameter else usual
        if not element:
            return None
        types[given.type_str] = types.get(given.type_str, frozenset()) | {element}
        elements.append(TYPES[element])
    wanted = {name: each.type for name, each in schema.attributes.items() if each.required}
    attributes: dict[str, Any] = {name: VALUES.get(each.value) for name, each in wanted.items()}
    if parameter not in types or None in attributes.values():
        return None
    outputs = [f"o{place}" for place in range(max(schema.min_output, 1))]
    inputs = [f"i{place}" for place in range(len(elements))]
    node = helper.make_node(schema.name, inputs, outputs, **attributes)
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    imports = [helper.make_opsetid("", schema.since_version)]
    pairs = zip(inputs, elements, strict=True)
    entries = [helper.make_tensor_value_info(name, each, None) for name, each in pairs]
    graph = helper.make_graph([node], "one", entries, ends)
    return types, helper.make_model(graph, opset_imports=imports, ir_version=10)


def is_loaded(made: ModelProto) -> bool | None:
    """Whether the engine loads a model; None if it refuses it, and not for want of a kernel."""
    try:
        onnxruntime.InferenceSession(made.SerializeToString(), providers=[PROVIDER])
    except Exception as error:  # noqa: BLE001 - it has several, of no common type
        return False if any(text in str(error) for text in NO_KERNEL) else None
    return True


def tried(schema: Any) -> Iterator[tuple[Types, ModelProto]]:
    """A node of each element type of each parameter, with the types that it has."""
    for constraint in schema.type_constraints:
        for name in sorted(tensors(constraint.allowed_type_strs) & TYPES.keys()):
            made = model(schema, constraint.type_param_str, name)
            if made is not None:
                yield made


def of_body(schema: Any, last: int, usable: list[Kernel]) -> Iterator[str]:
    """The lines of an operator version with a function body, which is in force up to an opset."""
    version = schema.since_version
    any_types = len({each.type_str for each in schema.inputs}) > 1
    found: dict[tuple[int, ...], list[Types]] = defaultdict(list)
    nodes = list(tried(schema))
    if not nodes:  # it has an attribute that is a graph: nothing is known
        yield line(version, version, {})
    for types, made in nodes:
        if not any_types and any(takes(each, types) for each in usable):
            continue
        loaded = []
        for opset in range(version, last + 1):
            made.opset_import[0].version = opset
            if is_loaded(made) is not False:  # or refused for something else: nothing is known
                loaded.append(opset)
        found[tuple(loaded)].append({} if any_types else types)
    if any_types and found:
        found = {tuple(sorted(set().union(*found))): [{}]}
    for opsets, held in found.items():
        for first, end in ranges(opsets):
            at = f"@{first}-{'' if end == last else end}"
            where = "" if (first, end) == (version, last) else f" {at}"
            for each in merged(held):
                yield line(version, version, each, where)


def ranges(opsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of opsets without a gap."""
    for _, run in itertools.groupby(enumerate(opsets), lambda pair: pair[1] - pair[0]):
        held = [opset for _, opset in run]
        yield held[0], held[-1]


def unregistered(schemas: Sequence[Any]) -> Iterator[str]:
    """The operators of other domains than ONNX's own that the engine does not know at all."""
    for schema in schemas:
        if not schema.domain or schema.deprecated:
            continue
        names = [f"y{place}" for place in range(max(schema.min_output, 1))]
        inputs = ["x"] * max(schema.min_input, 1)
        node = helper.make_node(schema.name, inputs, names, domain=schema.domain)
        ends = [helper.make_empty_tensor_value_info(name) for name in names]
        data = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
        domains = (schema.domain, schema.since_version), ("", 13)
        imports = [helper.make_opsetid(*each) for each in domains]
        graph = helper.make_graph([node], "one", [data], ends)
        made = helper.make_model(graph, opset_imports=imports, ir_version=10)
        try:
            onnxruntime.InferenceSession(made.SerializeToString(), providers=[PROVIDER])
        except Exception as error:  # noqa: BLE001 - it has several, of no common type
            if "is not a registered function" in str(error):
                yield f"{schema.domain}.{schema.name}"


def main() -> None:
    """Write the lines, and say how many nodes were tried."""
    onnxruntime.set_default_logger_severity(4)
    lines, seen = defaultdict[str, list[str]](list), Counter[tuple[bool, bool]]()
    for (name, first, last), held in sorted(kernels().items()):
        lines[name] += [line(first, last, each) for each in merged(held)]
    schemas: Sequence[Any] = defs.get_all_schemas_with_history()
    ended = {(each.name, each.domain): defs.onnx_opset_version() for each in schemas}
    for schema in sorted(schemas, key=lambda each: -each.since_version):
        if schema.domain or schema.deprecated or schema.name in LEFT:
            continue
        version, last = schema.since_version, ended[schema.name, ""]
        ended[schema.name, ""] = version - 1
        usable = [
            each for each in map(kernel_of, lines[schema.name]) if each.is_of(version, version)
        ]
        if schema.has_function or schema.has_context_dependent_function:
            lines[schema.name] += of_body(schema, last, usable)
            continue
        others = []
        for types, made in tried(schema):
            has_kernel, loaded = any(takes(each, types) for each in usable), is_loaded(made)
            if loaded is None:
                continue
            seen[has_kernel, loaded] += 1
            if loaded and not has_kernel:
                others.append(types)
        lines[schema.name] += [line(version, version, each) for each in others and merged(others)]
    lines |= {name: [] for name in unregistered(schemas)}
    path = PROFILES / f"onnxruntime-{onnxruntime.__version__}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["kernels"] = {name: sorted(texts, key=order) for name, texts in sorted(lines.items())}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print("nodes, by whether a kernel is for them and whether they are loaded:", dict(seen))


def order(text: str) -> tuple[int, str]:
    """What lines are sorted by: the first version."""
    return int(text.partition("-")[0]), text


if __name__ == "__main__":
    main()
