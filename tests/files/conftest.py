"""Ways of copying bytes, and running the command line on checkpoints."""

import pytest

from tensorsplit.files import byte_copies, byte_files
from tests.cli.conftest import refused, tensorsplit

__all__ = ["refused", "tensorsplit"]


@pytest.fixture(params=["ranges", "rows"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy range by range, and rows in blocks of a few."""
    if request.param == "ranges":
        monkeypatch.setattr(byte_copies, "_LONG", 0)
        monkeypatch.setattr(byte_copies, "_TASK", 100)
    else:
        for module in (byte_copies, byte_files):
            monkeypatch.setattr(module, "BLOCK", 100)
        monkeypatch.setattr(byte_copies, "_WRITE", 1)
        monkeypatch.setattr(byte_copies, "_TASK", 700)
