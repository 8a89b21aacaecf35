"""Running ONNX models: resolved into steps first, then one step after the other."""
