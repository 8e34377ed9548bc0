"""Film to field: decode a recording, reduce it frame by frame, and check what came out.

The names are loaded on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from video2pde.lazy import load_on_use

if TYPE_CHECKING:
    from video2pde.recording.checks import Checks as Checks
    from video2pde.recording.look import Preview as Preview
    from video2pde.recording.look import preview as preview
    from video2pde.recording.look import suggest_crop as suggest_crop
    from video2pde.recording.read import read_field as read_field
    from video2pde.recording.read import read_recording as read_recording
    from video2pde.recording.read import RecordingResult as RecordingResult
    from video2pde.recording.source import open_recording as open_recording

_HOMES = {
    "Checks": "checks",
    "Preview": "look",
    "RecordingResult": "read",
    "open_recording": "source",
    "preview": "look",
    "read_field": "read",
    "read_recording": "read",
    "suggest_crop": "look",
}

__all__ = [
    "Checks",
    "Preview",
    "RecordingResult",
    "open_recording",
    "preview",
    "read_field",
    "read_recording",
    "suggest_crop",
]


__getattr__ = load_on_use(__name__, _HOMES, globals())
