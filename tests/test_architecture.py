"""The rules of the house that a reader can rely on."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import pytest

import tensorsplit

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FAMILY = {"Split", "SplitToSequence", "VariadicSplit"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def comments(path: Path) -> list[str]:
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def test_each_layer_imports_only_the_layers_below_it() -> None:
    checker = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([checker], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PUBLIC = {name for name in tensorsplit.__all__ if inspect.isfunction(getattr(tensorsplit, name))}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_no_module_has_the_name_of_a_public_function(name: str) -> None:
    assert importlib.util.find_spec(f"tensorsplit.{name}") is None


def repeated(named: list[tuple[str, Path]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for what, path in named:
        found.setdefault(what, []).append(name(path))
    return {what: paths for what, paths in found.items() if len(paths) > 1}


def test_no_two_files_share_a_name() -> None:
    files = [(path.stem, path) for path in SOURCES if not path.stem.startswith("__")]
    assert not repeated(files)


SHARED = {"Split"}
"""Layers of torch have the names of operators, and onnx finds operators by the names of classes."""


def test_no_two_classes_share_a_name() -> None:
    classes = [
        (node.name, path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert set(repeated(classes)) == SHARED


NO_VERBS = re.compile(
    r"(An?|And|As|At|Before|Behind|By|Every|For|From|How|In|Is|Its?|Nothing|Of|On|One|Only|Such|That"
    r"|The|There|These|They|This|What|When|Where|Whether|Which|Who|Why|With)\b"
)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_the_docstring_of_a_function_begins_with_a_verb(path: Path) -> None:
    """A property says what it is."""
    others = [
        f"{function.name}: {text}"
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        and not any("property" in ast.unparse(each) for each in function.decorator_list)
        and (text := ast.get_docstring(function))
        and NO_VERBS.match(text)
    ]
    assert not others


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_records_know_operators_by_name(path: Path) -> None:
    if path.parent.name == "records":
        return
    compared = [
        f"line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Compare, ast.MatchValue))
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and part.value in FAMILY
    ]
    assert not compared


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name)
def test_no_check_is_switched_off_as_a_whole(path: Path) -> None:
    for comment in comments(path):
        assert "noqa" not in comment or re.search(r"# noqa: [A-Z]+[0-9]+", comment), comment
        assert "type: ignore" not in comment or "type: ignore[" in comment, comment
        assert not re.match(r"#\s*(ruff|mypy|flake8|pyright):", comment), comment


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_switched_off_lint_rule_has_a_reason(path: Path) -> None:
    for comment in comments(path):
        if "noqa" in comment:
            assert re.search(r"# noqa: [A-Z0-9, ]+ - \S", comment), comment


def test_the_map_names_the_floors_of_the_contract_in_their_order() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = content["tool"]["importlinter"]["contracts"][0]["layers"]
    contract = [set(floor.split(" | ")) for floor in floors if floor != "__main__"]
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    layers = text.partition("## Layers")[2].partition("```text\n")[2].partition("```")[0]
    named = re.findall(r"^(\w+)(?:/|\.py) ", layers, re.MULTILINE)
    assert sorted(named) == sorted(name for floor in contract for name in floor)
    places = {name: place for place, floor in enumerate(contract) for name in floor}
    assert [places[name] for name in named] == sorted(places.values())


def test_nothing_imports_the_oracle_or_is_imported_by_it() -> None:
    tree = ast.parse((ROOT / "tests" / "oracle.py").read_text(encoding="utf-8"))
    imported = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert not {module for module in imported if module.startswith("tensorsplit")}


def test_the_package_is_typed() -> None:
    assert (ROOT / "src" / "tensorsplit" / "py.typed").is_file()


def test_the_kernels_are_one_source_for_all_processors() -> None:
    folder = ROOT / "src/tensorsplit/native"
    files = [*folder.glob("*.hpp"), *folder.glob("kernels*.cpp")]
    intrinsics = re.compile(r"immintrin|arm_neon|\b_mm\d*_|\bv\w+q_[us]\d+\b|__m\d{3}")
    found = [path.name for path in files if intrinsics.search(path.read_text())]
    assert found == ["vectors.hpp"]
