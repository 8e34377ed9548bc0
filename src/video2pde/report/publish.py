"""Leave a finished run's files: result, model, tables, figures and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.front import FrontFit
from video2pde.field import Windows
from video2pde.recording import RecordingResult
from video2pde.refinement.result import Refinement
from video2pde.result import Result
from video2pde.runs.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Everything that the report draws: the result and what led to it.

    ``forecasts``: (first frame, values (t, y, x)) of the chosen law over validation and test.
    """

    result: Result
    recording: RecordingResult
    windows: Windows
    refined: Mapping[str, Refinement]
    fronts: Mapping[str, tuple[FrontFit, ...]]
    forecasts: tuple[tuple[int, NDArray[np.float32]], ...]
    timings: Mapping[str, float]


def publish(folder: RunFolder, artefacts: Artefacts, latex: bool = False) -> None:
    """Write what a finished run leaves behind, each file whole or not at all."""
    folder.write_json("result.json", artefacts.result.to_json(artefacts.timings))
