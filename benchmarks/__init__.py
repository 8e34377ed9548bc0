"""Benchmarks: each module has ``run()``, which measures and gives rows of name, value and unit."""
