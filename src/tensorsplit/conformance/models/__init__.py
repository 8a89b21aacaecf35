"""Building the models of the cases: ONNX and OpenVINO IR."""
