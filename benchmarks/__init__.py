"""Benchmarks: each module has ``run()``, which measures and returns rows of name, value and unit."""
