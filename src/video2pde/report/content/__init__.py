"""What the report says, section by section, from a run's artefacts."""

from __future__ import annotations

from video2pde import __version__
from video2pde.report.content.choice import tell_analysis, tell_selection
from video2pde.report.content.fit import tell_fit
from video2pde.report.content.fitting import tell_calibration, tell_front, tell_refinement
from video2pde.report.content.flow import tell_flow
from video2pde.report.content.head import compose_head, film_name
from video2pde.report.content.maps import tell_maps
from video2pde.report.content.play import tell_play
from video2pde.report.content.prediction import tell_test, tell_validation
from video2pde.report.content.provenance import tell_provenance, tell_settings, tell_timings, tell_warnings
from video2pde.report.content.recording import tell_drift, tell_preprocessing, tell_smoothing
from video2pde.report.content.recovery import tell_recovery
from video2pde.report.content.search import tell_search
from video2pde.report.content.steadiness import tell_steadiness
from video2pde.report.content.structure import tell_conditioning, tell_stability, tell_sweep
from video2pde.report.content.words import Story
from video2pde.report.document import Code, Page

__all__ = ["Story", "compose_page"]

SECTIONS = (
    tell_recovery,
    tell_preprocessing,
    tell_smoothing,
    tell_drift,
    tell_flow,
    tell_search,
    tell_conditioning,
    tell_sweep,
    tell_stability,
    tell_validation,
    tell_calibration,
    tell_maps,
    tell_steadiness,
    tell_fit,
    tell_front,
    tell_selection,
    tell_test,
    tell_refinement,
    tell_analysis,
    tell_settings,
    tell_provenance,
    tell_timings,
    tell_warnings,
)
"""The page's sections, in the order of the stages; the second opinion stands after the answer."""


def compose_page(story: Story) -> Page:
    """Compose the page of a run, finished or not: what is there is shown."""
    field = story.run.field
    head = compose_head(story)
    told = (tell_play(story, head.player), *(tell(story) for tell in SECTIONS))
    subtitle = "" if field is None else f"{field.provenance.path}, SHA-256 {field.provenance.sha256[:12] or 'unknown'}"
    return Page(
        f"Report on {film_name(story)}",
        head,
        tuple(section for section in told if section is not None),
        subtitle=subtitle,
        footer=("Made by ", Code(f"video2pde {__version__}"), ". This page asks the network for nothing."),
    )
