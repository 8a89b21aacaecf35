"""What tests of lowered models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorsplit.engines.process import EngineProcess


@pytest.fixture(scope="module")
def process() -> Iterator[EngineProcess]:
    """A process that runs a model in OpenVINO with several feeds, whatever comes of each."""
    made = EngineProcess("openvino", "tests.engines.guarded:run_all")
    yield made
    made.close()
