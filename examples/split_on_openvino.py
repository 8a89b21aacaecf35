"""Run ``lengths.onnx`` on stock OpenVINO: ``python split_on_openvino.py MODEL LENGTH LENGTH``."""

import sys

import numpy as np
import openvino

model, *lengths = sys.argv[1:]
request = openvino.Core().compile_model(model, "CPU").create_infer_request()
request.set_tensor("x", openvino.Tensor(np.arange(1, 7, dtype=np.float32)))
request.set_tensor("lengths", openvino.Tensor(np.array(lengths, np.int64)))
try:
    request.start_async()
    request.wait()
except RuntimeError:
    sys.exit("OpenVINO refuses to run it")
head, tail = (request.get_tensor(name).size for name in ("head", "tail"))
print(f"OpenVINO splits 6 numbers into {head} and {tail}")
