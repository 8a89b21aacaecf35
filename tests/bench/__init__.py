"""The benchmarks: their checks, not their times."""
