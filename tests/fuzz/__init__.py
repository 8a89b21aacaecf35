"""Fuzzing: random and broken input for arrays, ONNX models and IR models, in child processes.

``python -m tests.fuzz`` runs it, for as long as it is told; `CONTRIBUTING.md` says how.
"""
