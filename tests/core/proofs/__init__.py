"""Proofs about the length rules: for every dimension, by z3 (docs/proofs.md)."""
