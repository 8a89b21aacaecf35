"""Whatever object is given to a public function: a refusal with a name, or what the object raises.

No object is taken for what it says it is, no call goes on for ever, and none ends with an error of
Python that speaks of our code. See `hostile_objects`, which runs in child processes.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

import tensorsplit as ts
from tensorsplit import backend, openvino
from tests import hostile_objects
from tests.interpreters import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it limits memory")

NOT_TRIED = {
    *("native.choices", "native.measure", "openvino.extensions", "torch.register_onnx_export"),
    *("backend.is_compatible", "backend.supports_device"),
}
"""Functions without parameters, and those that only say yes or no."""


def public_functions() -> set[str]:
    names = {name for name in ts.__all__ if inspect.isfunction(getattr(ts, name))}
    for module in (ts.files, ts.lengths, ts.native, openvino, ts.torch, backend):
        where = module.__name__.rpartition(".")[2]
        for name in module.__all__:
            found = getattr(module, name)
            is_layer = where == "torch" and inspect.isclass(found)
            if inspect.isroutine(found) or is_layer:
                names.add(f"{where}.{name}")
    return names


def test_every_public_function_has_an_entry() -> None:
    assert public_functions() - {*hostile_objects.DOORS} - NOT_TRIED == set()


@pytest.mark.parametrize("name", hostile_objects.DOORS)
def test_every_parameter_has_an_entry(name: str) -> None:
    signature = inspect.signature(hostile_objects.function(name))
    others = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    wanted = {each.name for each in signature.parameters.values() if each.kind not in others}
    assert wanted <= hostile_objects.DOORS[name].keys()


NEEDS = {"torch.": "torch", "files.": "fsspec", "files.reshard": "safetensors"}
"""Libraries that functions need, by how their names begin."""


def is_usable(name: str) -> bool:
    """Whether the libraries that a function needs are installed."""
    return all(find_spec(needed) for begin, needed in NEEDS.items() if name.startswith(begin))


def groups() -> list[list[str]]:
    """Functions that one process calls, each of which has to start and to import."""
    names = list(filter(is_usable, hostile_objects.DOORS))
    return [names[start::6] for start in range(6)]


@pytest.mark.thorough
@pytest.mark.parametrize("names", groups(), ids=lambda names: names[0])
def test_what_is_said_of_hostile_objects(names: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_objects", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == []
