"""Checkpoints of several files, as tests write and read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def load(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    found: dict[str, np.ndarray] = load_file(path)
    return found


def held(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def shard_file(folder: Path, number: int, count: int) -> Path:
    return folder / f"model-{number:05}-of-{count:05}.safetensors"


def save_shards(folder: Path, shards: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Write tensors to a file for each shard, and their index, which is returned."""
    from safetensors.numpy import save_file

    names: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        file = shard_file(folder, number, len(shards))
        save_file(tensors, file, metadata={"shard": str(number)})
        names.update(dict.fromkeys(tensors, file.name))
    index = {"metadata": {"total_size": 416, "kept": [1]}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text("{}")
    return index
