"""What tests of lowered models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorsplit.engines.process import EngineProcess
from tests.model.lower.running import OwnEngine, Runner


def _elsewhere() -> EngineProcess:
    return EngineProcess("openvino", "tests.engines.guarded:run_all")


@pytest.fixture(scope="module")
def openvino() -> Iterator[Runner]:
    """A process that runs a model with several feeds, whatever comes of each."""
    made = _elsewhere()
    yield made
    made.close()


@pytest.fixture(
    scope="module",
    params=["own", pytest.param("other", marks=pytest.mark.engine("onnxruntime", "openvino"))],
)
def process(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """What runs a lowered model: our own engine, which has to take it as well, or another one."""
    made = OwnEngine() if request.param == "own" else _elsewhere()
    yield made
    made.close()
