"""Runs made up for the tests of the reports: a small one by hand, and one as large as they get."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from tensorsplit.conformance.case import CaseInfo, CaseSplit
from tensorsplit.conformance.document import Document, Result, SubjectInfo
from tensorsplit.conformance.report import html

MEASURED = {
    "by": "a test",
    "date": "2026-11-21",
    "system": "Linux-6.1-x86_64",
    "python": "3.11.9",
    "cpu": "an imagined one",
}


def case(name: str, **facts: Any) -> CaseInfo:
    """A case whose operator and element type are the first two segments of its id."""
    operator, element_type, *_ = name.split("/")
    told = CaseInfo(
        id=name,
        operator=operator,
        element_type=element_type,
        shape_class="static",
        rank=2,
        spelling="attribute",
        place="graph",
        use="",
        rule="Each part has the length that is listed for it (Split, Inputs).",
        decision="",
        expects="parts",
        opset=18,
        model_format="onnx",
        cut=CaseSplit(shape=(6, 4), axis=0, sizes=(2, 4), keepdims=True),
    )
    return dataclasses.replace(told, **facts)


SUBJECTS = (
    SubjectInfo("tensorsplit", "engine", {"numpy": "2.4.6", "onnx": "1.23.2"}),
    SubjectInfo("onnxruntime", "engine", {"onnxruntime": "1.31.1"}),
    SubjectInfo("openvino", "engine", {"openvino": "2026.4.1"}),
    SubjectInfo("onnxslim", "tool", {"onnxslim": "0.1.80", "onnx": "1.23.2"}),
)

PLAIN = case("onnx.Split-18/float/static-r2/input/graph", spelling="initializer")
STRINGS = case("onnx.Split-13/string/static-r2/input/graph", spelling="initializer", opset=13)
CHUNK = case(
    "onnx.SplitToSequence-11/float/static-r1/chunk-0/graph",
    decision="D10",
    expects="refusal",
    rank=1,
    cut=None,
    opset=11,
)
LOOP = case(
    "onnx.Split-18/int64/dynamic-r3/num_outputs/loop", place="loop", rank=3, use="SequenceAt"
)
REST = case(
    "openvino.VariadicSplit-1/float/static-r1/remainder-negative/graph",
    decision="D7",
    expects="refusal",
    model_format="ir",
    spelling="constant",
    cut=CaseSplit(shape=(6,), axis=0, sizes=(-1, 7), keepdims=True),
)

DEVIATIONS: dict[tuple[str, str], dict[str, Any]] = {
    (STRINGS.id, "openvino"): {
        "verdict": "wrong",
        "detail": "The second part repeats the first elements.",
        "output": "y1",
        "index": (0, 3),
        "expected": "'fourth </script> & <b>'",
        "seen": "'first'",
        "memory": True,
        "deviation": "openvino-strings",
    },
    (CHUNK.id, "onnxruntime"): {
        "verdict": "crash",
        "detail": "The process died while the model was loaded.",
        "signal": "SIGFPE",
    },
    (LOOP.id, "openvino"): {
        "verdict": "wrong",
        "detail": "2147483648 came back as another number.",
        "output": "y0",
        "index": (1, 0, 0),
        "expected": "2147483648",
        "seen": "-2147483648",
        "deviation": "openvino-int64",
    },
    (LOOP.id, "onnxslim"): {"verdict": "refused-but-legal", "detail": "It raised KeyError: 'x'."},
    (REST.id, "openvino"): {
        "verdict": "accepted-but-illegal",
        "detail": "It ran and returned parts of 6 and 7 elements.",
        "memory": True,
    },
    (REST.id, "onnxruntime"): {"verdict": "skipped"},
    (REST.id, "onnxslim"): {"verdict": "skipped"},
}


def small() -> Document:
    """Five cases with four subjects; every other result than those of `DEVIATIONS` is a pass."""
    cases = tuple(sorted((PLAIN, STRINGS, CHUNK, LOOP, REST), key=lambda told: told.id))
    results = tuple(
        Result(told.id, subject.name, **{"verdict": "pass", **_deviation(told, subject)})
        for told in cases
        for subject in SUBJECTS
    )
    suite = {"version": "0.1.0", "cases": len(cases), "seed": 0}
    return Document(suite, dict(MEASURED), SUBJECTS, cases, results)


def _deviation(told: CaseInfo, subject: SubjectInfo) -> dict[str, Any]:
    return DEVIATIONS.get((told.id, subject.name), {})


def clean() -> Document:
    """The same run with nothing but passes."""
    run = small()
    results = tuple(Result(result.case, result.subject, "pass") for result in run.results)
    return dataclasses.replace(run, results=results)


def script(name: str, subject: str) -> str:
    """A reproduction about as long as a real one, with what HTML and JSON have to escape."""
    operator = name.split("/", 1)[0]
    body = "\n".join(f"# {operator}: line {number} of the model" for number in range(40))
    return f'"""{name} with {subject} <&> </script>"""\nimport {subject}\n{body}\nprint("ü")\n'


def contents(name: str) -> dict[str, str]:
    """The model, input and what is expected of a case; one is not known."""
    if name == LOOP.id:
        return {}
    expected = "" if name in (CHUNK.id, REST.id) else "    'y0': np.array(['</script>']),"
    model = "" if name == REST.id else "case (string[6] x) =>\n{\n   y0, y1 = Split (x)\n}"
    return {"model": model, "input": f"    'x': np.arange({'6, ' * 400}),", "expected": expected}


def no_script(name: str, subject: str) -> None:
    """That there is no reproduction."""
    del name, subject


_NAMES = (
    "tensorsplit", "onnx-reference", "onnxruntime", "openvino", "tvm", "iree", "opencv",
    "tract", "tinygrad", "onnx-shape-inference", "onnx-version-converter",
    "onnxscript-optimizer", "onnxslim", "onnxsim",
)  # fmt: skip
_OPERATORS = (
    "onnx.Split-1", "onnx.Split-2", "onnx.Split-11", "onnx.Split-13", "onnx.Split-18",
    "onnx.SplitToSequence-11", "onnx.SplitToSequence-24", "openvino.Split-1",
    "openvino.VariadicSplit-1",
)  # fmt: skip
_TYPES = ("float", "float16", "double", "int32", "int64", "uint8", "bool", "string", "bfloat16")
_SPELLINGS = ("attribute", "initializer", "constant", "runtime", "overridable", "absent")
_PLACES = ("graph", "graph", "graph", "if", "loop", "scan", "function")
_MIX = (
    ("refused-but-legal", "It raised InvalidArgument: node {n}: split sizes do not fit the shape"),
    ("refused-but-legal", "It raised NotImplementedError: Split of rank {n}"),
    ("unsupported-type", "There is no kernel for this element type."),
    ("accepted-but-illegal", "It ran and returned {n} parts."),
    ("wrong", "Part {n} differs from what the standard says."),
    ("crash", "The process was ended by a signal."),
    ("hang", "It did not come back within 30 seconds."),
)


def large(cases: int = 5000, seed: int = 0) -> Document:
    """As many cases with 14 subjects, about one result in seven a deviation."""
    random = Random(seed)
    told = tuple(sorted(_cases(cases, random), key=lambda entry: entry.id))
    subjects = tuple(
        SubjectInfo(name, "tool" if number > 8 else "engine", {name: f"1.{number}.0"})
        for number, name in enumerate(_NAMES)
    )
    results = tuple(
        _result(entry, number, name, random) for entry in told for number, name in enumerate(_NAMES)
    )
    suite = {"version": "0.1.0", "cases": cases, "seed": seed}
    return Document(suite, dict(MEASURED), subjects, told, results)


@cache
def large_page() -> str:
    """The page of it, which takes seconds to make."""
    return html(large(), script)


def _cases(count: int, random: Random) -> Iterator[CaseInfo]:
    for number in range(count):
        operator, kind = random.choice(_OPERATORS), random.choice(_TYPES)
        spelling, place, rank = random.choice(_SPELLINGS), random.choice(_PLACES), 1 + number % 6
        refused = number % 5 == 0
        sizes = tuple(random.choices((0, 1, 2, 3), k=1 + number % 4))
        axis = number % rank
        shape = tuple(sum(sizes) if at == axis else 1 + at for at in range(rank))
        yield case(
            f"{operator}/{kind}/static-r{rank}/{spelling}/{place}/{number}",
            rank=rank,
            spelling=spelling,
            place=place,
            decision=f"D{1 + number // 5 % 20}" if refused else "",
            expects="refusal" if refused else "parts",
            rule=f"Sentence {number % 60} of the page of {operator} holds (Attributes).",
            cut=None if refused else CaseSplit(shape=shape, axis=axis, sizes=sizes, keepdims=True),
        )


def _result(entry: CaseInfo, number: int, name: str, random: Random) -> Result:
    if number == 0 or random.random() > 0.02 * number:
        return Result(entry.id, name, "pass")
    verdict, detail = random.choice(_MIX[: 2 + number])
    told: dict[str, Any] = {"detail": detail.format(n=random.randrange(9))}
    if verdict == "wrong":
        told |= {"output": f"y{random.randrange(4)}", "index": (0,) * entry.rank}
        told |= {"expected": f"{random.random():.4g}", "seen": f"{random.random():.4g}"}
        told |= {"memory": random.random() < 0.05}
    if verdict == "crash":
        told["signal"] = random.choice(("SIGSEGV", "SIGABRT", "SIGFPE"))
    known = random.random() < 0.9
    return Result(entry.id, name, verdict, deviation=f"{name}-{verdict}" if known else "", **told)
