"""Writes the generated pages of the documentation; `python scripts/pages.py --help`.

The pages of operators and codes are those that commands print; what is here is in the documentation
alone: the pictures, the page of dialects, and what changed between operator versions.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tensorsplit.arrays.typed import GivenShape
from tensorsplit.conformance.document import read
from tensorsplit.conformance.known import compare, load
from tensorsplit.conformance.report.rendering import markdown as page_of_run
from tensorsplit.core.differences import EXAMPLES, diff, given_a_number, number_operand
from tensorsplit.core.records import dialects, operators
from tensorsplit.core.rules import LengthRule, ceil, equal, explicit, remainder
from tensorsplit.core.schema import Operator
from tensorsplit.pages import Page, index, markdown, page_of
from tensorsplit.pages.codes import codes_page
from tensorsplit.pages.content import RULES, rules_with_operands
from tensorsplit.pages.explained import explain
from tensorsplit.pages.markdown import environment
from tensorsplit.pictures.svg import Drawn, sheet
from tensorsplit.storage.outputs import Outputs

DIALECTS = "seven-into-three.md"
_TEMPLATES = Path(__file__).with_name("templates")
_PLAIN = "counts from the back"

PICTURES: dict[str, tuple[str, tuple[int, ...], dict[str, object]]] = {
    "split.svg": ("onnx.Split-18", (7, 4), {"num_outputs": 3}),
    "outside.svg": ("openvino.VariadicSplit-1", (6,), {"axis": 0, "split_lengths": [-1, 7]}),
    "refused.svg": ("onnx.Split-18", (5,), {"num_outputs": 4}),
}
"""The pictures of guides and of the README: an operator, a shape and its operands."""

_REFUSED: dict[LengthRule, tuple[tuple[int, ...], object]] = {
    explicit: ((6,), [2, 3]),
    remainder: ((6,), [-1, 7]),
    equal: ((7,), 2),
    ceil: ((5,), 4),
}
"""A shape and lengths that each rule refuses."""


def write_pages(folder: Path) -> None:
    """Write the pages of codes and dialects, the folders ``operators`` and ``pictures``."""
    pages = {folder / "operators" / name: text for name, text in operator_pages().items()}
    pages |= {folder / "pictures" / name: text for name, text in pictures().items()}
    Outputs(create_dirs=True, overwrite=True).write(
        {folder / "errors.md": codes_page(), folder / DIALECTS: dialects_page(), **pages}
    )


def write_results(run: Path, folder: Path) -> None:
    """Write ``conformance.md``, the page of a run that ``conformance --format json`` wrote."""
    known = load()
    outputs = Outputs([folder / "conformance.md"], reads=[run], overwrite=True)
    outputs.check()
    document = compare(read(run), known).document
    outputs.write({outputs.files[0]: page_of_run(document, known)})


def _rendered(name: str, **values: object) -> str:
    text = (_TEMPLATES / name).read_text(encoding="utf-8")
    return environment("tensorsplit.pages").from_string(text).render(**values)


def operator_pages() -> dict[str, str]:
    """Return every file of the folder of operator pages, by its name."""
    files = {"README.md": index(), "differences.md": differences()}
    for record in operators.values():
        page = page_of(record)
        files[f"{record.id}.md"] = markdown(page)
        files[f"{record.id}.svg"] = operator_picture(record, page)
    return files


def differences() -> str:
    """Describe each change from a version of an operator to the next, and ONNX to OpenVINO."""
    pairs = pairwise(operators.values())
    found = [diff(before, after) for before, after in pairs if before.name == after.name]
    found.append(diff("openvino.Split-1", "openvino.VariadicSplit-1"))
    found.append(diff("onnx.Split-18", "openvino.VariadicSplit-1"))
    return _rendered("differences.md.jinja", found=found)


def pictures() -> dict[str, str]:
    """Return each file of the folder of pictures, by its name."""
    return {
        name: sheet([(_call(operands), _drawn(operator, shape, operands))])
        for name, (operator, shape, operands) in PICTURES.items()
    }


def operator_picture(record: Operator, page: Page) -> str:
    """Draw the examples of an operator page, and for each length rule a split that it refuses."""
    splits = [(example.shape, example.operands) for example in page.examples]
    for rule, operand in rules_with_operands(record):
        if rule in _REFUSED:
            shape, given = _REFUSED[rule]
            splits.append((shape, {record.axis: 0, operand: given}))
    figures = [(_call(operands), _drawn(record.id, shape, operands)) for shape, operands in splits]
    return sheet(figures, name=record.id)


def _call(operands: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in operands.items())


def _drawn(operator: str, shape: GivenShape, operands: dict[str, Any]) -> Drawn:
    (split,) = explain(operator, shape, **operands).splits
    if split.drawn is None:
        raise ValueError(f"{operator} of {shape}: there is nothing to draw")
    return split.drawn


def dialects_page() -> str:
    """Return the page of dialects: what other libraries and standards mean by a split."""
    return _rendered(
        "dialects.md.jinja",
        counted=list(_counted()),
        listed=list(_listed()),
        remarks=list(_remarks()),
    )


def _counted() -> Iterator[dict[str, Any]]:
    """Yield the versions and dialects that can be given one number, with what they answer."""
    for record in (*operators.values(), *dialects.values()):
        answers = [given_a_number(record, dim, number) for dim, number in EXAMPLES]
        if None not in answers:
            call, here = _calls(record, EXAMPLES[0][1])
            yield {"record": record, "call": call, "here": here, "answers": answers}


def _calls(record: Operator, number: int) -> tuple[str, str]:
    """Return how a record is written with a number, and the call of `ts` that does the same."""
    named = number_operand(record, number)
    if record.is_dialect and named is not None:
        given = str(named[1])
        axis = f", {record.axis}=0" if record.axis_default is None else ""
        return f"{record.id}(x, {given})", f'ts.like("{record.id}")(x, {given}{axis})'
    name, call = (named[0], f"{named[0]} = {named[1]}") if named else ("num_outputs", "")
    made = f'ts.plan("{record.id}", x.shape, {record.axis}=0, {name}={number})(x)'
    return call or f"{number} outputs", made


def _listed() -> Iterator[dict[str, object]]:
    """Yield the dialects that can be given lengths or indices, with their rule in words."""
    for record in dialects.values():
        for lengths in record.lengths:
            if 1 in lengths.rules:
                rule = RULES[lengths.rules[1]]
                yield {"record": record, "operand": lengths.operand, "rule": rule}


def _remarks() -> Iterator[dict[str, object]]:
    for record in dialects.values():
        for aspect, text in record.notes.items():
            if text != _PLAIN:
                yield {"record": record, "aspect": aspect, "text": text}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the generated pages.")
    parser.add_argument("folder", type=Path, help="where the pages go, such as docs")
    parser.add_argument("--run", type=Path, help="write the page of this conformance run instead")
    given = parser.parse_args()
    if given.run is None:
        write_pages(given.folder)
    else:
        write_results(given.run, given.folder)
