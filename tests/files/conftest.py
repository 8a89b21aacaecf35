"""Checkpoints of random bits, and running the command line on them."""

from tests.cli.conftest import refused, tensorsplit

__all__ = ["refused", "tensorsplit"]
