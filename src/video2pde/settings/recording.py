"""Settings of the recording: from film to field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from video2pde.settings.base import Count, NotNegative, Positive, Rate, Section


class RecordingSettings(Section):
    """Film to field."""

    crop: tuple[int, int, int, int] | None = Field(
        None, description="rectangle x0, y0, width, height in camera pixels; none: the whole picture"
    )
    border: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        "auto", description="pixels cut off on each side of the crop; auto: 8 where the crop is 256 pixels or more"
    )
    grid: tuple[Annotated[int, Field(ge=4)], Annotated[int, Field(ge=4)]] | None = Field(
        None, description="rows, columns of the field; none: 200 on the longer side, never more than the pixels"
    )
    smooth: Annotated[float, Field(ge=0, le=1000)] = Field(
        0.0, description="σ in grid pixels of the Gaussian filter on the field; 0: none"
    )
    observable: Literal["dark", "bright", "absorbance"] = Field(
        "dark", description="dark: 1 − I/Imax (ink); bright: I/Imax (fluorescence); absorbance: −log10(I/I0)"
    )
    white: Positive | None = Field(
        None,
        description="Imax; none: full white for 8 bits and for films; for deeper pictures the empty scene's level "
        "(dark) or the brightest value (bright)",
    )
    reference: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | str | None = Field(
        None,
        description="the picture that counts as 1 (flat field, before the bleach, empty scene): first and last frame "
        "whose mean it is, a picture's file or name in the folder, or before: the frames before the bleach; none: one "
        "white for all pixels, for absorbance the bright percentile picture",
    )
    dark: NotNegative | str | None = Field(
        None,
        description="what the camera reads without light: a level, a picture's file or name in the folder, or outside: "
        "the dark surroundings of what is seen",
    )
    times: str | None = Field(
        None, description="CSV file with the times of the frames: columns file,time for a folder, else time"
    )
    illumination: Literal["auto", "none", "gain", "flat", "gain+flat", "steady"] = Field(
        "auto",
        description="light that changes or is uneven, divided out as the background shows it: gain: over time; "
        "flat: over the picture; auto: what is needed and certain; none: nothing; steady: nothing, for the light is "
        "known to be steady and even, and makes up for no part of a law",
    )
    response: Annotated[float, Field(ge=0.2, le=5)] | str = Field(
        "auto",
        description="how grey values follow light, undone before u is formed: linear; srgb, bt709, hlg or pq; a gamma; "
        "a CSV file of pixel value and light; auto: what the file names, bt709 and srgb where it names a camera too",
    )
    channel: Count | Annotated[str, Field(min_length=1, max_length=80)] | tuple[float, ...] = Field(
        "auto",
        description="the colour that is read: luma, r, g, b, a channel's name in the file or its number (from 1), or "
        "weights of the channels; auto: luma, or the channel with clearly more contrast to noise",
    )
    channels: tuple[Count | str, Count | str] | None = Field(
        None,
        description="two channels that are read as two fields u and w, whose laws are found together: names or numbers "
        "(from 1), or the names of two arrays of an .npz file; none: one field",
    )
    second: str | None = Field(
        None,
        description="recording of the second field w, where it is a file or folder of its own; none: there is none",
    )
    z: Count | None = Field(
        None, description="which plane is read of a stack in depth that was taken again and again, counted from 1"
    )
    series: Count | Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="which recording is read of several in a microscope's file (series, position, scene): its name, or "
        "its number from 1",
    )
    frames: Literal["auto", "all"] = Field(
        "auto",
        description="auto: the longest run of frames that show one scene, without black frames, a hand in the picture "
        "or what follows a cut; all: every frame between start and stop",
    )
    objects: Literal["auto", "none"] = Field(
        "auto",
        description="auto: of what is in the picture and never moves, specks of dust are divided out, walls, a rim or "
        "letters at the side are cut off, and other things are masked (dark observable alone); none: all is left",
    )
    saturated: Literal["auto", "none"] = Field(
        "auto",
        description="auto: a small part of the picture in which the signal is saturated at some time is masked; none: "
        "it is left",
    )
    dripping: Literal["auto", "none"] = Field(
        "auto",
        description="auto: where dye comes in until some frame, the recording begins after it (dark observable and "
        "frames = auto alone); none: all frames are used",
    )
    stabilise: Literal["auto", "none", "shift", "affine"] = Field(
        "auto",
        description="put the frames of a camera that shakes back in place, as they are reduced to the grid: shift; "
        "affine: turned and zoomed, too; auto: what is needed and certain",
    )
    extent: tuple[Positive, Positive] | None = Field(
        None, description="height, width of the field in image units; none: 200 on the longer side"
    )
    scale: str | None = Field(
        None, description="size of a camera pixel with its unit, such as 0.05mm; none: image units"
    )
    pitch: Literal["cells", "nodes"] = Field(
        "cells", description="cells: Δx = L/n; nodes: the paper's L/(n − 1), 1/n too large"
    )
    unclip: bool = Field(
        True,
        description="undo what the camera does to an empty background: noise that it clips, edges that it rounds away",
    )
    start: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        0, description="first frame used, counted from 0; auto: the first after the scene jumps (a bleach)"
    )
    stop: Annotated[int, Field(ge=1)] | None = Field(None, description="first frame no longer used")
    every: Count = Field(1, description="use every n-th frame")
    fps: Rate | None = Field(
        None, description="frames per second; needed where frames carry no times, overrides the recording's times"
    )
    mask: str | None = Field(
        None,
        description="region that obeys the law: a picture file, a threshold such as 'u>0.3@0' on frame 0, droplet "
        "(found and eroded), or regions of Fiji (.roi, .zip)",
    )
    edges: Literal["auto", "no_flux", "measured", "open"] = Field(
        "auto",
        description="no_flux: nothing passes the edges of picture or mask; measured: the rim of picture or mask as "
        "it is seen drives the rollouts, for what enters or leaves; open: the picture goes straight on; auto: no_flux "
        "for a picture, measured for a mask",
    )
    colours: str | None = Field(
        None,
        description="pictures in false colours, turned back into values from 0 to 1: a colour map of Matplotlib, such "
        "as viridis or jet, or the legend's place in the picture, legend:x,y,width,height",
    )
    overlays: Literal["auto", "none"] = Field(
        "auto", description="what is drawn over false colours (text, a scale bar, a legend): auto: left out of the law"
    )
    kymograph: Literal["rows", "columns", "across"] | None = Field(
        None,
        description="one dimension: rows or columns: of a single picture, they are the times of a line; across: a "
        "narrow channel, averaged across its width; none: pictures",
    )
    allow_truncated: bool = Field(False, description="go on with the readable frames of a damaged file")

    @property
    def first(self) -> int:
        """The first frame that is read: 0 where the start is still to be found."""
        return 0 if self.start == "auto" else self.start
