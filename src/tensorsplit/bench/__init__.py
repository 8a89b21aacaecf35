"""Benchmarks: every result is checked, every time is paired with the one it is compared with.

A workload is a cut as data (`workloads`), a peer is a small adapter (`peers`). `runner.measure`
times all peers of a workload in turns beside what they are compared with, and its figures become a
table (`table`), JSON (`figures`) and a picture (`picture`).
"""
