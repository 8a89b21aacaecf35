"""Write ``append.onnx``, which puts a row behind chunks of others, and its inputs.

onnx's reference evaluator puts the row in front of them.
"""

from pathlib import Path

import numpy as np
import onnx

MODEL = """
<ir_version: 8, opset_import: ["": 18]>
append (float[7, 4] rows, float[1, 4] new) => (float[8, 4] all)
<int64 two = {2}, int64 four = {4}> {
    chunks = SplitToSequence <axis = 0> (rows, two)
    longer = SequenceInsert (chunks, new, four)
    all = ConcatFromSequence <axis = 0> (longer)
}
"""


def main() -> None:
    folder = Path(__file__).parent
    model = onnx.parser.parse_model(MODEL)
    for node, name in zip(model.graph.node, ("chunks", "insert", "join"), strict=True):
        node.name = name
    onnx.save(model, folder / "append.onnx")
    rng = np.random.default_rng(0)
    np.save(folder / "append_rows.npy", rng.standard_normal((7, 4), dtype=np.float32))
    np.save(folder / "append_new.npy", rng.standard_normal((1, 4), dtype=np.float32))


if __name__ == "__main__":
    main()
