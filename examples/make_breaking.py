"""Write two models that break what is widely used.

``lengths.onnx`` is fed its lengths: fed ``[-1, 7]``, OpenVINO 2026.4.1 returns 7 of 6 numbers.
``outputs.onnx`` has ``num_outputs`` 2 and three outputs: onnx's shape inference aborts (1.23.2).
"""

from pathlib import Path

import onnx

MODELS = {
    "lengths.onnx": """
<ir_version: 8, opset_import: ["": 18]>
lengths (float[6] x, int64[2] lengths) => (float[n] head, float[m] tail) {
    head, tail = Split <axis = 0> (x, lengths)
}
""",
    "outputs.onnx": """
<ir_version: 8, opset_import: ["": 18]>
outputs (float[6] x) => (float[3] a, float[3] b, float[0] c) {
    a, b, c = Split <axis = 0, num_outputs = 2> (x)
}
""",
}


def main() -> None:
    for name, text in MODELS.items():
        model = onnx.parser.parse_model(text)
        model.graph.node[0].name = "split"
        onnx.save(model, Path(__file__).parent / name)


if __name__ == "__main__":
    main()
