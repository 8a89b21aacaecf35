"""Write ``uneven.onnx``: a Split-18 that cuts 7 rows into 3 parts, and its input."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper


def main() -> None:
    folder = Path(__file__).parent
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["a", "b", "c"], name="thirds", num_outputs=3)],
        "uneven",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7, 4])],
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 4]),
        ],
    )
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "uneven.onnx")
    rng = np.random.default_rng(0)
    np.save(folder / "uneven_x.npy", rng.standard_normal((7, 4), dtype=np.float32))


if __name__ == "__main__":
    main()
