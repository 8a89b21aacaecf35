"""What the commands say is in the language of the user; what programs read stays as it is."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from rich.cells import cell_len

from tensorsplit.cli import sentences
from tensorsplit.cli.verifying import _lines
from tensorsplit.engines.compare import Difference
from tensorsplit.pages.codes import code_examples
from tests.cli.test_language import CATALOGUES, ROOT, chinese, tensorsplit

__all__ = ["chinese"]

ONE_ERROR = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[6] x) => (float[2] a, float[2] b, float[2] c) { a, b, c = Split <num_outputs = 2> (x) }
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(ONE_ERROR), path)
    return str(path)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["check"], "[TS703 用法错误] 没有给出 MODEL；"),
        (["chek"], "没有 'chek' 这个命令；您是不是要找 check？；参见 tensorsplit --help"),
        (["run"], "[TS703 用法错误] 没有给出 MODEL；参见 tensorsplit run --help"),
        (["bench", "--repeat", "0"], "'--repeat' 的值无效：0 不在范围"),
        (["rule", "304"], "[TS703 用法错误] 参数 'code': '304' 不是代码；您是不是要找 TS"),
        (["lower", "m", "--to", "x"], "没有 '--to' 这个选项；您是不是要找 --for？；参见"),
        (["explain", "Split", "4y"], "参数 'shape': '4y' 不是形状；请写出 0 到 2^63-1 的维度"),
        (["split", "x.npy", "-o", "d", "--split", "1,a"], "'1,a' 不是长度的列表；请写成"),
        (["split", "x.npy", "-o", "", "--chunk", "3"], "名称为空；请给出"),
        (
            ["check", "none.onnx"],
            "[TS501 不是可读取的模型] 参数 'model': 'none.onnx'：没有这个文件；请给出",
        ),
    ],
)
def test_an_error_has_the_name_of_its_code(args: list[str], said: str) -> None:
    done = tensorsplit(*args, TENSORSPLIT_LANG="zh_CN")
    assert done.stderr.startswith("tensorsplit: 错误: ")
    assert said in done.stderr
    english = tensorsplit(*args)
    assert english.stderr.startswith("tensorsplit: error: [TS")
    assert english.stderr.isascii()
    assert (done.returncode, done.stdout) == (english.returncode, english.stdout) == (2, "")


def test_findings_have_names_severities_and_a_summary(model: str) -> None:
    done = tensorsplit("check", model, LANG="zh_CN.UTF-8")
    lines = done.stdout.splitlines()
    assert lines[1].startswith(
        "  错误 [TS305 长度的个数与输出的个数不同] num_outputs: 它得到 2 段，"
    )
    assert lines[-1] == "1 个切分节点，1 个错误"
    assert done.returncode == tensorsplit("check", model).returncode == 1


IN_ENGLISH = {
    *("TS206", "TS309", "TS313", "TS314", "TS315", "TS316"),  # of arrays
    *("TS401", "TS403", "TS405"),
    "TS602",  # of an adapter of the conformance suite
}
"""Codes whose messages are in English in any language: no command for models or files has them."""


def english_in(message: str) -> list[str]:
    """Return what is in English in a message, printed in Chinese.

    Quoted words are values, and so is what NumPy says.
    """
    message = re.sub(r"\(ValueError: [^;]*\)", "(...)", message)
    found = re.fullmatch(r"(?:\w+ )?\[TS\d{3}\] (?:[^:]*: )??(?:[^:' ]*: )?(.*)", message)
    assert found
    pieces = found[1].split("; ")
    printed = [
        sentences.localized("; ".join(pieces[:at]))
        + "\n"
        + sentences.localized("; ".join(pieces[at:]))
        for at in range(1, len(pieces) + 1)
    ]
    left = [re.sub(r"'[^']*'|\"[^\"]*\"|did you mean \S+", "", text) for text in printed]
    return min((re.findall(r"[a-z]+(?: [a-z]+){2,}", text) for text in left), key=len)


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("code", [code for code in code_examples() if code not in IN_ENGLISH])
def test_the_message_of_a_code_is_in_chinese(code: str) -> None:
    """The example of the code; three words in a row are no value."""
    assert english_in(code_examples()[code].message) == []


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("code", sorted(IN_ENGLISH))
def test_a_message_that_no_command_has_is_in_english(code: str) -> None:
    assert english_in(code_examples()[code].message) != []


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("give axis or split_lengths", "请给出 axis 或 split_lengths"),
        ("the axis is 2, but the data has rank 1", "轴是 2，而数据的秩是 1"),
        ("make it 1 part, or give the node 3 outputs", "请改为 1 段，或让节点有 3 个输出"),
        ("tensor a: the chunk length is 0", "张量 a：块长是 0"),
        (
            "feed a tensor of float and shape (7, 4)",
            "请传入 类型为 float、形状为 (7, 4) 的张量",
        ),
        (
            (
                "convert it to opset 13, as lengths can't be computed before opset 10 (tensorsplit"
                " convert m.onnx --opset 13 -o m.onnx), then rewrite it with: tensorsplit check"
                " m.onnx --for portable --fix"
            ),
            (
                "请把它转换到 opset 13，因为在 opset 10 之前无法计算长度（tensorsplit"
                " convert m.onnx --opset 13 -o m.onnx），然后请用以下命令改写："
                "tensorsplit check m.onnx --for portable --fix"
            ),
        ),
        (
            (
                'mnn 1: "Model wasn\'t fully converted": SplitToSequence is not converted where'
                " the number of parts is not known; this node gives one length for all parts"
            ),
            (
                'mnn 1："Model wasn\'t fully converted"：段数未知时不转换 SplitToSequence；'
                "这个节点为所有的段给出一个长度"
            ),
        ),
        (
            "x.onnx exists; give --overwrite, or another path",
            "x.onnx 已经存在；请给出 --overwrite，或其他路径",
        ),
        (
            "Add failed on float32[4, 3], int32[] (ValueError: no shape fits (4, 3) (3, 3))",
            "Add 对 float32[4, 3], int32[] 运行失败（ValueError: no shape fits (4, 3) (3, 3)）",
        ),
        (
            "'M' is a tensor(float), which Loop at opset 13 does not take",
            "'M' 是 tensor(float)，opset 13 的 Loop 不接受这种类型",
        ),
        (  # with a semicolon in what is before the last one
            (
                "openvino 1: an axis of length 0 that is split into chunks gives one empty tensor;"
                " SequenceLength of parts of length 1 is right; this node gives a sequence without"
                " tensors (for some inputs)"
            ),
            (
                "openvino 1：把长度为 0 的轴分块会得到一个空张量；长度为 1 的段的 SequenceLength"
                " 是正确的；这个节点给出没有张量的序列（对某些输入）"
            ),
        ),
        ("onnxruntime gave an invalid answer", "onnxruntime 给出的结果无效"),
        ("did you mean b? use one of a, b", "did you mean b? 请使用以下之一：a, b"),
        ("nobody has ever seen such a message", "nobody has ever seen such a message"),
        ("这里 (there is no such file)", "这里 (there is no such file)"),  # is translated already
        (
            str(Difference("e", "r", "y", "values", "2", "1", (0,), 3, "1.5")),
            "e：output 'y': 3 个值不同，最大差异 1.5；第一处 [0] 是 1，而 r 是 2",
        ),
    ],
)
def test_a_message_is_printed_in_chinese(message: str, printed: str) -> None:
    assert sentences.localized(message) == printed


@pytest.mark.usefixtures("chinese")
def test_what_a_verification_found_is_in_chinese() -> None:
    wrong = Difference("e", "r", "y", "values", "2", "1", (0,), 3)
    rounded = replace(wrong, is_allowed=True)
    for is_equal, difference in ((False, wrong), (True, rounded)):
        result = SimpleNamespace(is_equal=is_equal, differences=[difference], before=[], engine="e")
        found: Any = SimpleNamespace(missing=[], refusal=None, results=[result], outputs={"y": 0})
        assert "3 个值不同；第一处 [0] 是 1，而 r 是 2" in list(_lines(found, "x"))[-1]


def test_the_reason_of_a_change_is_in_chinese(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "uneven.onnx", tmp_path / "m.onnx")
    words = ("lower", str(tmp_path / "m.onnx"), "--for", "portable", "--dry-run")
    done = tensorsplit(*words, TENSORSPLIT_LANG="zh_CN")
    assert done.stdout.startswith("原因：portable 要求明确给出长度\n")


def test_a_note_on_rules_is_in_chinese(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4))
    rules = '[[split]]\ntensors = "*"\nsplit = [1, 3]\n[[split]]\ntensors = "y"\nsplit = [1]\n'
    (tmp_path / "r.toml").write_text(rules)
    words = ("split", str(tmp_path / "x.npy"), "--rules", str(tmp_path / "r.toml"), "--dry-run")
    done = tensorsplit(*words, TENSORSPLIT_LANG="zh_CN")
    assert "没有张量与 'y' 匹配" in done.stderr


def test_severities_are_coloured_in_any_language(model: str) -> None:
    done = tensorsplit("check", model, TENSORSPLIT_LANG="zh_CN", FORCE_COLOR="1")
    assert re.search("\x1b\\[1;31m  ?错误\x1b\\[0m", done.stdout)


@pytest.mark.parametrize("style", ["json", "sarif", "github"])
def test_what_programs_read_stays_in_english(style: str, model: str) -> None:
    seen = [
        tensorsplit("check", model, "--format", style, TENSORSPLIT_LANG=language)
        for language in ("en", "zh_CN")
    ]
    assert seen[0].stdout == seen[1].stdout != ""
    assert seen[0].returncode == seen[1].returncode == 1


@pytest.mark.parametrize("style", ["json", "markdown"])
def test_the_page_of_a_code_stays_in_english_for_programs(style: str) -> None:
    words = ("rule", "TS841", "--format", style)
    assert tensorsplit(*words, TENSORSPLIT_LANG="zh_CN").stdout == tensorsplit(*words).stdout


def test_the_page_of_a_code_is_translated_and_folded_by_columns() -> None:
    done = tensorsplit("rule", "TS825", TENSORSPLIT_LANG="zh_CN", COLUMNS="50")
    page, _, _ = done.stdout.partition("    model = ")
    title, *lines = page.splitlines()
    assert title == "TS825  某些维度值不允许的切分  提示"
    assert "D3  等分就是各段相等，不能整除的维度会被拒绝。" in page
    assert 40 < max(map(cell_len, lines)) <= 50
    assert not any(line.strip()[:1] in set("，。；：、）") for line in lines if line.strip())


@pytest.mark.parametrize(
    ("args", "seen", "english"),
    [
        (
            ["explain", "Split", "7,4", "num_outputs=3"],
            [
                "规则：n 段",
                "(7, 4) 的轴 0 (7)：3 段",
                "│ 段 1  (3, 4)",
                "每一段中保持完整：轴 1 (4)",
            ],
            ["part", "size", "Rule", "axis 1"],
        ),
        (["explain", "Split", "N,6", "axis=1", "num_outputs=3"], [" 段 │ 0", "大小 │ 2"], ["part"]),
        (
            ["ops", "Split"],
            [
                "\n属性\n  axis ",
                "\n输入\n  input  T",
                "未给出长度  ",
                "要切分的张量",
                "规范没有说明",
            ],
            ["Attributes", "required", "no lengths are given", "Source"],
        ),
        (["ops"], ["属性 split", "11 至 12", "长度来自"], ["attribute", "refused"]),
        (
            ["diff", "onnx.Split-13", "Split"],
            ["属性 num_outputs", "行为 "],
            ["attribute ", "refused"],
        ),
        (
            ["bench", "--list", "rgb"],
            ["4K 图像的各通道", "与 memcpy 对比", "库：tensorsplit"],
            ["beside"],
        ),
    ],
)
def test_what_is_shown_is_in_chinese(args: list[str], seen: list[str], english: list[str]) -> None:
    """The names of operands stay as they are."""
    done = tensorsplit(*args, TENSORSPLIT_LANG="zh_CN")
    assert (done.returncode, done.stderr) == (0, "")
    assert [words for words in seen if words not in done.stdout] == []
    assert [words for words in english if words in done.stdout] == []


def test_the_advice_on_random_inputs_is_in_chinese(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[4,k] x, float[3,k] y) => (float[a,k] z) { z = Add (x, y) }"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    done = tensorsplit("run", str(path), "--seed", "0", TENSORSPLIT_LANG="zh_CN")
    assert done.stderr.strip().endswith(
        "请给它其 opset 允许的输入；输入是随机的（--seed 0）：给出形状，例如 --input-shape x:4,7"
        " --input-shape y:3,7，或者用 --input x=FILE --input y=FILE 给出值"
    )


def test_a_drawing_lines_up_in_chinese() -> None:
    """A Chinese character takes two columns."""
    done = tensorsplit(
        "explain", "Split", "N,6", "axis=1", "num_outputs=3", TENSORSPLIT_LANG="zh_CN"
    )
    bars = [line for line in done.stdout.splitlines() if "│" in line]
    assert len(bars) == 3
    assert len({cell_len(line[: line.index("│")]) for line in bars}) == 1
    assert len({cell_len(line) for line in bars}) == 1


@pytest.mark.usefixtures("chinese")
def test_a_number_of_things_takes_one_form_in_chinese() -> None:
    assert [sentences.amount(n, "error") for n in (0, 1, 2)] == ["0 个错误", "1 个错误", "2 个错误"]


def test_a_number_of_things_takes_two_forms_in_english() -> None:
    assert [sentences.amount(n, "error") for n in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]


@pytest.mark.usefixtures("chinese")
def test_braces_in_values_and_unknown_codes_stay() -> None:
    assert sentences.tr("interrupted") == "已中断"
    assert sentences.tr("{name} needs --verify", name="{x}") == "{x} 需要与 --verify 同用"
    assert sentences.named("[TS999] and [TS842] and TS842") == (
        "[TS999] and [TS842 目标引擎结果错误] and TS842"
    )


def test_a_text_without_a_translation_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("babel")
    copy = tmp_path / "zh_CN" / "LC_MESSAGES" / CATALOGUES[0].name
    copy.parent.mkdir(parents=True)
    shutil.copy(CATALOGUES[0], copy)
    content = copy.read_text(encoding="utf-8").replace('msgid "out of memory"', 'msgid "no memory"')
    copy.write_text(content, encoding="utf-8")
    update: Any = runpy.run_path(str(ROOT / "scripts" / "messages.py"))["update"]
    update.__globals__["CATALOGUES"] = tmp_path
    update()
    assert capsys.readouterr().out == f"{copy}: not translated: out of memory\n"


def test_no_message_is_put_together_in_steps() -> None:
    """The catalogues have whole messages: of a part that is added with +=, no translation fits."""
    added = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "src" / "tensorsplit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) in ("fix", "problem")
    ]
    assert added == []


def test_an_advice_with_a_second_half_is_in_chinese(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[B] x) => (float[3] a, float[3] b) <int64[2] l = {3, 3}> { a, b = Split (x, l) }"""
    onnx.save(parser.parse_model(text), tmp_path / "traced.onnx")
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    np.save(tmp_path / "x.npy", np.arange(1, 7))
    out = ("-o", str(tmp_path / "out"))
    for words, *command in (
        ("请用 check --fix-traced", "check", str(tmp_path / "traced.onnx")),
        ("在整个张量之间切分", "split", str(tmp_path / "x.gguf"), *out, "--num-outputs", "2"),
        ("接受一个 -1", "split", str(tmp_path / "x.npy"), *out, "--split", "7,-1"),
    ):
        done = tensorsplit(*command, TENSORSPLIT_LANG="zh_CN")
        assert words in done.stdout + done.stderr
