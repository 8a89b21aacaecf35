"""Benchmarks: every result is checked, every time is paired with the one it is compared with.

A workload is a split as data, with its tensors and the check of results (`workloads`).
Each library is a peer (`peers`), in a process of its own (`workers`). `workers.measure` times all
peers of a workload in turns with the baseline (`timing`), and the figures become a table or JSON
(`figures`).
"""
