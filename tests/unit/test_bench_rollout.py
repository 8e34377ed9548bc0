"""The benchmark of rollouts: it calls the compiled stage by its place of arguments, and must still agree with it."""

from __future__ import annotations

import pytest
from benchmarks.rollout import bench_stage


@pytest.mark.parametrize(("accuracy", "precision"), [(2, "float64"), (4, "float32")])
def test_the_stage_that_is_timed_is_the_one_that_numpy_computes(accuracy: int, precision: str) -> None:
    ours, numpy, ratio = bench_stage(accuracy, precision)
    assert ratio["value"] == pytest.approx(numpy["value"] / ours["value"])
    assert ours["unit"] == numpy["unit"] == "µs"
