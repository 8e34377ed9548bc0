"""What the benchmarks share: scores, tables, the peers' tasks, and the paper's text in plain SciPy."""
