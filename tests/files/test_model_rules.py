"""Rules of model families, against plain slices of small models of each family."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import rule_files
from tensorsplit.files.model_rules import built_in
from tests.cli.conftest import Command
from tests.refusals import refused

numpy_files = pytest.importorskip("safetensors.numpy")
RANDOM = np.random.default_rng(3604)
HEAD, HIDDEN, MIDDLE, WORDS = 4, 24, 16, 40

Tensors = dict[str, np.ndarray]
Cut = Callable[[np.ndarray, int, int], np.ndarray]
"""What a rank gets of a tensor, of so many ranks."""


def whole(x: np.ndarray, _: int, __: int) -> np.ndarray:
    return x


def share(axis: int) -> Cut:
    """Equal slices of an axis."""

    def cut(x: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        length = x.shape[axis] // ranks
        return x[(slice(None),) * axis + (slice(rank * length, (rank + 1) * length),)]

    return cut


def copied(heads: int) -> Cut:
    """Whole heads of rows, of which several ranks get the same where there are too few."""

    def cut(x: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        of_ranks = max(heads // ranks, 1)
        first = rank * heads // ranks
        return x.reshape(heads, -1, *x.shape[1:])[first : first + of_ranks].reshape(
            of_ranks * (x.shape[0] // heads), *x.shape[1:]
        )

    return cut


def fused(axis: int, *heads: int) -> Cut:
    """A share of each of the tensors that lie one after the other."""

    def cut(x: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        lengths = [each * x.shape[axis] // sum(heads) for each in heads]
        pieces = np.split(x, np.cumsum(lengths)[:-1], axis)
        return np.concatenate([share(axis)(piece, rank, ranks) for piece in pieces], axis)

    return cut


def llama(kv: int, mlp: dict[str, tuple[tuple[int, ...], Cut]] | None = None) -> dict[str, Any]:
    """The tensors of a layer, with their shapes and cuts."""
    rows = {
        f"self_attn.{name}_proj.{kind}": ((heads * HEAD, HIDDEN)[: 2 - (kind == "bias")], cut)
        for name, heads, cut in (("q", 8, share(0)), ("k", kv, copied(kv)), ("v", kv, copied(kv)))
        for kind in ("weight", "bias")
    }
    layer = {
        **rows,
        "self_attn.o_proj.weight": ((HIDDEN, 8 * HEAD), share(1)),
        **(
            mlp
            or {
                "mlp.gate_proj.weight": ((MIDDLE, HIDDEN), share(0)),
                "mlp.up_proj.weight": ((MIDDLE, HIDDEN), share(0)),
                "mlp.down_proj.weight": ((HIDDEN, MIDDLE), share(1)),
            }
        ),
        "self_attn.q_norm.weight": ((HEAD,), whole),
        "input_layernorm.weight": ((HIDDEN,), whole),
    }
    return {
        **{f"model.layers.{n}.{name}": each for n in (0, 1) for name, each in layer.items()},
        "model.embed_tokens.weight": ((WORDS, HIDDEN), whole),
        "lm_head.weight": ((WORDS, HIDDEN), share(0)),
    }


def experts() -> dict[str, Any]:
    return {
        f"block_sparse_moe.experts.{n}.{name}.weight": each
        for n in range(3)
        for name, each in {
            "w1": ((MIDDLE, HIDDEN), share(0)),
            "w2": ((HIDDEN, MIDDLE), share(1)),
            "w3": ((MIDDLE, HIDDEN), share(0)),
        }.items()
    } | {"block_sparse_moe.gate.weight": ((3, HIDDEN), whole)}


def interleaved(prefix: str, attention: str, rows: int, head: str) -> dict[str, Any]:
    """Attention whose query, key and value lie side by side: a rank gets its groups as they lie."""
    return {
        f"{prefix}.0.{attention}.query_key_value.weight": ((rows, HIDDEN), share(0)),
        f"{prefix}.0.{attention}.query_key_value.bias": ((rows,), share(0)),
        f"{prefix}.0.{attention}.dense.weight": ((HIDDEN, 8 * HEAD), share(1)),
        f"{prefix}.0.{attention}.dense.bias": ((HIDDEN,), whole),
        f"{prefix}.0.mlp.dense_h_to_4h.weight": ((MIDDLE, HIDDEN), share(0)),
        f"{prefix}.0.mlp.dense_h_to_4h.bias": ((MIDDLE,), share(0)),
        f"{prefix}.0.mlp.dense_4h_to_h.weight": ((HIDDEN, MIDDLE), share(1)),
        f"{prefix}.0.mlp.dense_4h_to_h.bias": ((HIDDEN,), whole),
        head: ((WORDS, HIDDEN), share(0)),
    }


def encoder(layer: str, attention: str) -> dict[str, Any]:
    inside = {
        f"{attention}.{name}.{kind}": ((8 * HEAD, HIDDEN)[: 2 - (kind == "bias")], share(0))
        for name in ("query", "key", "value")
        for kind in ("weight", "bias")
    }
    inside |= {
        "attention.output.dense.weight": ((HIDDEN, 8 * HEAD), share(1)),
        "attention.output.dense.bias": ((HIDDEN,), whole),
        "intermediate.dense.weight": ((MIDDLE, HIDDEN), share(0)),
        "intermediate.dense.bias": ((MIDDLE,), share(0)),
        "output.dense.weight": ((HIDDEN, MIDDLE), share(1)),
        "output.dense.bias": ((HIDDEN,), whole),
    }
    return {f"{layer}.0.{name}": each for name, each in inside.items()} | {
        "pooler.dense.weight": ((HIDDEN, HIDDEN), whole)
    }


def t5() -> dict[str, Any]:
    attention = {
        f"{place}.{name}.weight": ((8 * HEAD, HIDDEN), share(0))
        for place in (
            "encoder.block.0.layer.0.SelfAttention",
            "decoder.block.0.layer.1.EncDecAttention",
        )
        for name in "qkv"
    }
    inside = "encoder.block.0.layer"
    return attention | {
        f"{inside}.0.SelfAttention.o.weight": ((HIDDEN, 8 * HEAD), share(1)),
        f"{inside}.0.SelfAttention.relative_attention_bias.weight": ((32, 8), share(1)),
        f"{inside}.1.DenseReluDense.wi.weight": ((MIDDLE, HIDDEN), share(0)),
        "decoder.block.0.layer.2.DenseReluDense.wi_0.weight": ((MIDDLE, HIDDEN), share(0)),
        "decoder.block.0.layer.2.DenseReluDense.wi_1.weight": ((MIDDLE, HIDDEN), share(0)),
        f"{inside}.1.DenseReluDense.wo.weight": ((HIDDEN, MIDDLE), share(1)),
        "shared.weight": ((WORDS, HIDDEN), whole),
        "lm_head.weight": ((WORDS, HIDDEN), share(0)),
    }


GPT2 = {
    "transformer.h.0.attn.c_attn.weight": ((HIDDEN, 24 * HEAD), fused(1, 8, 8, 8)),
    "transformer.h.0.attn.c_attn.bias": ((24 * HEAD,), fused(0, 8, 8, 8)),
    "transformer.h.0.attn.c_proj.weight": ((8 * HEAD, HIDDEN), share(0)),
    "transformer.h.0.attn.c_proj.bias": ((HIDDEN,), whole),
    "transformer.h.0.mlp.c_fc.weight": ((HIDDEN, MIDDLE), share(1)),
    "transformer.h.0.mlp.c_fc.bias": ((MIDDLE,), share(0)),
    "transformer.h.0.mlp.c_proj.weight": ((MIDDLE, HIDDEN), share(0)),
    "transformer.wte.weight": ((WORDS, HIDDEN), whole),
}
QWEN = {
    "transformer.h.0.attn.c_attn.weight": ((24 * HEAD, HIDDEN), fused(0, 8, 8, 8)),
    "transformer.h.0.attn.c_attn.bias": ((24 * HEAD,), fused(0, 8, 8, 8)),
    "transformer.h.0.attn.c_proj.weight": ((HIDDEN, 8 * HEAD), share(1)),
    "transformer.h.0.mlp.w1.weight": ((MIDDLE, HIDDEN), share(0)),
    "transformer.h.0.mlp.w2.weight": ((MIDDLE, HIDDEN), share(0)),
    "transformer.h.0.mlp.c_proj.weight": ((HIDDEN, MIDDLE), share(1)),
    "lm_head.weight": ((WORDS, HIDDEN), share(0)),
}
PHI3 = {
    "model.layers.0.self_attn.qkv_proj.weight": ((16 * HEAD, HIDDEN), fused(0, 8, 4, 4)),
    "model.layers.0.self_attn.o_proj.weight": ((HIDDEN, 8 * HEAD), share(1)),
    "model.layers.0.mlp.gate_up_proj.weight": ((2 * MIDDLE, HIDDEN), fused(0, 1, 1)),
    "model.layers.0.mlp.down_proj.weight": ((HIDDEN, MIDDLE), share(1)),
    "lm_head.weight": ((WORDS, HIDDEN), share(0)),
}
HEADS = {"num_attention_heads": 8}
GROUPED = {**HEADS, "num_key_value_heads": 2}
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": ({"model_type": "llama", **HEADS, "num_key_value_heads": None}, llama(8)),
    "mistral": ({"model_type": "mistral", **GROUPED}, llama(2)),
    "qwen2": ({"model_type": "qwen2", **GROUPED, "num_key_value_heads": 1}, llama(1)),
    "qwen3": ({"model_type": "qwen3", **GROUPED, "quantization_config": None}, llama(2)),
    "mixtral": ({"model_type": "mixtral", **GROUPED}, llama(2, experts())),
    "qwen": ({"model_type": "qwen", **HEADS}, QWEN),
    "phi3": (
        {"model_type": "phi3", **HEADS, "num_key_value_heads": 4, "intermediate_size": MIDDLE},
        PHI3,
    ),
    "gpt-neox": (
        {"model_type": "gpt_neox", **HEADS},
        interleaved("gpt_neox.layers", "attention", 24 * HEAD, "embed_out.weight"),
    ),
    "falcon": (
        {"model_type": "falcon", "new_decoder_architecture": True, **HEADS, "num_kv_heads": 4},
        interleaved("transformer.h", "self_attention", 16 * HEAD, "lm_head.weight"),
    ),
    "falcon-rw": (
        {"model_type": "falcon", "multi_query": False, **HEADS},
        interleaved("transformer.h", "self_attention", 24 * HEAD, "lm_head.weight"),
    ),
    "gpt2": ({"model_type": "gpt2", "n_head": 8}, GPT2),
    "bert": ({"model_type": "bert", **HEADS}, encoder("bert.encoder.layer", "attention.self")),
    "vit": ({"model_type": "vit", **HEADS}, encoder("vit.encoder.layer", "attention.attention")),
    "t5": ({"model_type": "t5", "num_heads": 8}, t5()),
}


def model(folder: Path, family: str, **changes: Any) -> tuple[Tensors, dict[str, Cut]]:
    """A checkpoint with random bits and its configuration, and what a rank gets of each tensor."""
    config, tensors = FAMILIES[family]
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config | changes))
    made = {
        name: np.frombuffer(RANDOM.bytes(4 * int(np.prod(shape))), np.uint32).reshape(shape)
        for name, (shape, _) in tensors.items()
    }
    numpy_files.save_file(made, folder / "model.safetensors")
    return made, {name: cut for name, (_, cut) in tensors.items()}


def test_each_family_is_tested_and_says_where_its_layout_is_from() -> None:
    assert built_in().keys() == FAMILIES.keys()
    for text in built_in().values():
        assert text.startswith("# ")
        assert "\n# Source: https://" in text
        assert tomllib.loads(text)["config"]["model_type"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_get_what_slices_give(tmp_path: Path, family: str, ranks: int) -> None:
    source, out = tmp_path / "model", tmp_path / "ranks"
    tensors, cuts = model(source, family)
    warnings.simplefilter("error", ts.SplitWarning)
    ts.files.split(source, out, rules=family, ranks=ranks)
    for rank in range(ranks):
        found = numpy_files.load_file(out / f"rank-{rank}-of-{ranks}.safetensors")
        assert found.keys() == tensors.keys()
        for name, each in found.items():
            assert np.array_equal(each, cuts[name](tensors[name], rank, ranks)), name
    ts.files.merge(out, tmp_path / "merged", rules=family)
    (merged,) = (tmp_path / "merged").glob("*.safetensors")
    found = numpy_files.load_file(merged)
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
    ts.files.reshard(out, tmp_path / "other", rules=family, ranks=(ranks, 1))
    other = numpy_files.load_file(tmp_path / "other" / "rank-0-of-1.safetensors")
    assert all(np.array_equal(other[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize(
    ("family", "key", "tensor"),
    [
        ("phi3", "num_key_value_heads", "model.layers.0.self_attn.qkv_proj.weight"),
        ("falcon", "num_kv_heads", "transformer.h.0.self_attention.query_key_value.weight"),
    ],
)
def test_fused_keys_and_values_of_fewer_heads_than_ranks(
    tmp_path: Path, family: str, key: str, tensor: str, ranks: int
) -> None:
    fused = np.frombuffer(RANDOM.bytes(12 * HEAD * HIDDEN), np.uint8).reshape(-1, HIDDEN)
    (tmp_path / "model").mkdir()
    numpy_files.save_file({tensor: fused}, tmp_path / "model" / "model.safetensors")
    config = FAMILIES[family][0] | {key: 2}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    ts.files.split(tmp_path / "model", tmp_path / "out", rules=family, ranks=ranks)
    heads = fused.reshape(12, HEAD, HIDDEN)
    names = [f"q{n}" for n in range(8)] + ["k0", "k1", "v0", "v1"]
    if family == "falcon":  # a key and its value stand behind the queries that share them
        names = [*names[:4], "k0", "v0", *names[4:8], "k1", "v1"]
    by_name = dict(zip(names, heads, strict=True))
    for rank in range(ranks):
        queries = range(8 * rank // ranks, 8 * (rank + 1) // ranks)
        (shared,) = {query // 4 for query in queries}
        own = [*(f"q{n}" for n in queries), f"k{shared}", f"v{shared}"]
        found = numpy_files.load_file(tmp_path / "out" / f"rank-{rank}-of-{ranks}.safetensors")
        expected = np.concatenate([by_name[each] for each in own])
        assert np.array_equal(found[tensor], expected)
    ts.files.merge(tmp_path / "out", tmp_path / "merged", rules=family)
    (merged,) = (tmp_path / "merged").glob("*.safetensors")
    assert np.array_equal(numpy_files.load_file(merged)[tensor], fused)


PLANS = {  # of transformers 5.23.0: `base_model_tp_plan` of the configurations
    "llama": {"q_proj": 0, "k_proj": 0, "v_proj": 0, "o_proj": 1}
    | {"gate_proj": 0, "up_proj": 0, "down_proj": 1, "lm_head": 0},
    "gpt-neox": {"query_key_value": 0, "attention.dense": 1}
    | {"dense_h_to_4h": 0, "dense_4h_to_h": 1},
}
PLANS |= dict.fromkeys(("mistral", "qwen2", "qwen3"), PLANS["llama"])


@pytest.mark.parametrize("family", PLANS)
def test_axes_are_those_of_the_plans_of_transformers(family: str) -> None:
    found = {
        pattern.removesuffix(".weight"): table["axis"]
        for table in tomllib.loads(built_in()[family])["shard"]
        for pattern in (
            [table["tensors"]] if isinstance(table["tensors"], str) else table["tensors"]
        )
        if pattern.endswith(".weight")
    }
    for layer, axis in PLANS[family].items():
        assert [place for name, place in found.items() if name.endswith(layer)] == [axis]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"model_type": "mistral"}, "TS718", ("model_type is 'mistral'", "'llama'")),
        ({"model_type": None}, "TS718", ("model_type is None",)),
        ({"quantization_config": {"bits": 4}}, "TS718", ("quantization_config",)),
        ({"num_attention_heads": None}, "TS717", ("num_attention_heads is None",)),
        ({"num_attention_heads": "8"}, "TS717", ("num_attention_heads is '8'",)),
        ({"num_attention_heads": True}, "TS717", ("num_attention_heads is True",)),
        ({"num_attention_heads": 0}, "TS717", ("num_attention_heads is 0",)),
        ({"num_attention_heads": 2}, "TS714", ("would cut",)),
    ],
)
def test_configurations_that_say_something_else(
    tmp_path: Path, changes: dict[str, Any], code: str, words: tuple[str, ...]
) -> None:
    model(tmp_path / "model", "llama", **changes)
    with refused(code, *words):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=4)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("TS717", {"shard": [{"tensors": "*", "axis": 0, "heads": "n" * 5000}]}),
        ("TS718", {"config": {"n" * 5000: 1}, "shard": []}),
        ("TS718", {"config": {"model_type": [*range(1000)]}, "shard": []}),
    ],
)
def test_refusals_of_long_rules_are_short(tmp_path: Path, code: str, rules: Any) -> None:
    model(tmp_path / "model", "llama")
    with refused(code, "config.json"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules=rules, ranks=4)


def test_configurations_that_cannot_be_read(tmp_path: Path) -> None:
    model(tmp_path / "model", "llama")
    config = tmp_path / "model" / "config.json"
    for text in (b"nope", b"[1]", b"[" * 99999, b" " * (1 << 21), None):
        config.unlink()
        if text is not None:
            config.write_bytes(text)
        with refused("TS717", "config.json"):
            ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=2)
        config.touch()


def test_a_model_that_is_not_there_is_named_and_not_its_configuration(tmp_path: Path) -> None:
    with refused("TS705", "no such file", parameter="source"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=2)


@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1])
def test_a_configuration_of_a_mebibyte_is_read_and_no_larger_one(tmp_path: Path, size: int) -> None:
    model(tmp_path / "model", "llama")
    config = tmp_path / "model" / "config.json"
    config.write_bytes(config.read_bytes().ljust(size))
    if size == 1 << 20:
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=2)
        return
    with refused("TS717", "config.json", "it is larger than 1048576 bytes"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_configuration_that_never_ends_is_not_read(tmp_path: Path) -> None:
    model(tmp_path / "model", "llama")
    (tmp_path / "model" / "config.json").unlink()
    os.mkfifo(tmp_path / "model" / "config.json")
    with refused("TS717", "config.json", "not a file"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="llama", ranks=2)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_rules_that_never_end_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tmp_path / "model", "llama")
    with refused("TS703", "it is a device", parameter="rules"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="/dev/zero", ranks=2)
    monkeypatch.setattr(rule_files, "_MOST_BYTES", 99)
    (tmp_path / "rules.toml").write_text("#" * 100, "utf-8")
    with refused("TS703", "it has more than 99 bytes", parameter="rules"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules=tmp_path / "rules.toml")


def test_a_falcon_whose_groups_are_others_is_refused(tmp_path: Path) -> None:
    model(tmp_path / "model", "falcon", new_decoder_architecture=False, multi_query=True)
    for family in ("falcon", "falcon-rw"):
        with refused("TS718"):
            ts.files.split(tmp_path / "model", tmp_path / "out", rules=family, ranks=2)


def test_names_that_come_along_win_over_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors, _ = model(tmp_path / "model", "llama")
    monkeypatch.chdir(tmp_path)
    Path("llama").write_text('[[rename]]\ntensors = "lm_head.weight"\nname = "head"\n')
    with pytest.warns(ts.SplitWarning, match="give ./llama for the file"):
        ts.files.split("model", "built-in", rules="llama", ranks=2)
    assert Path("built-in/rank-1-of-2.safetensors").exists()
    ts.files.split("model/model.safetensors", "file.safetensors", rules="./llama")
    found = numpy_files.load_file("file.safetensors")
    assert np.array_equal(found["head"], tensors["lm_head.weight"])


def test_a_model_without_any_of_the_tensors_is_named(tmp_path: Path) -> None:
    model(tmp_path / "model", "t5", model_type="gpt2", n_head=8)
    with pytest.warns(ts.SplitWarning, match="matches no tensor"):
        ts.files.split(tmp_path / "model", tmp_path / "out", rules="gpt2", ranks=2)


def test_a_copy_can_be_changed(tmp_path: Path) -> None:
    tensors, _ = model(tmp_path / "model", "llama", num_heads=8)
    text = built_in()["llama"].replace("num_attention_heads", "num_heads or nothing")
    (tmp_path / "my.toml").write_text(text)
    ts.files.split(tmp_path / "model", tmp_path / "out", rules=tmp_path / "my.toml", ranks=8)
    found = numpy_files.load_file(tmp_path / "out" / "rank-7-of-8.safetensors")
    name = "model.layers.1.self_attn.q_proj.weight"
    assert np.array_equal(found[name], tensors[name][28:])


def test_the_command_prints_files_of_rules(tensorsplit: Command) -> None:
    listed = tensorsplit("rules").out
    assert all(name in listed for name in built_in())
    assert tensorsplit("rules", "show", "llama").out.rstrip() == built_in()["llama"].rstrip()
    for words in (["show"], ["llama", "show"], ["show", "lama"]):
        done = tensorsplit("rules", *words)
        assert done.status == 2
        assert "TS703" in done.err
    assert "llama" in done.err
