"""Models as onnx-ir graphs, for the tools that read deeply or rewrite."""
