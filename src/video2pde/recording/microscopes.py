"""Files as microscopes write them: ND2 of Nikon, CZI of Zeiss, LIF of Leica.

Packages of the extra ``microscopes`` decode them (``vendors``); here their planes become frames, with times, channels,
planes in depth and the size of a pixel as for any other stack.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from video2pde.errors import InputError
from video2pde.recording.base import (
    choose_plane,
    DamagedError,
    describe_depth,
    first_line,
    Frame,
    Header,
    Mix,
    mix_channels,
    neighbours,
    Picture,
    require_finite,
    require_real,
)
from video2pde.recording.vendors import Series, VENDORS

MICROSCOPE_SUFFIXES = tuple(VENDORS)
EXTRA = "pip install 'video2pde[microscopes]'"


class MicroscopeFile:
    """Read one series of a microscope's file, plane by plane.

    ``plane``: which one is read of a stack in depth, from 1; ``series``: which recording of several in the file, by its
    name or its number from 1.
    """

    def __init__(
        self, path: Path, plane: int | None = None, series: int | str | None = None, mix: Mix | None = None
    ) -> None:
        self.path, self.plane, self.series, self.mix = path, plane, series, mix

    def mixed(self, mix: Mix) -> MicroscopeFile:
        return MicroscopeFile(self.path, self.plane, self.series, mix)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        with self._open() as found:
            depth, channels = self._depth(found), range(found.channels)
            for k in neighbours(found.frames, places):
                first, second = (np.stack([found.read(t, depth, c) for c in channels]) for t in (k, k + 1))
                yield first, second

    @cached_property
    def header(self) -> Header:
        with self._open() as found:
            require_real(self.path, found.dtype)
            self._depth(found)
            white, limit = describe_depth(found.dtype)
            numbered = tuple(f"channel {k + 1}" for k in range(found.channels))
            named = len(set(found.names)) == found.channels and all(found.names)
            notes = [f"series '{found.name}'"] if found.name else []
            notes += ["times from the file's metadata"] if found.times is not None else []
            notes += [f"plane {self.plane} of {found.depth} in depth (Z)"] if found.depth > 1 else []
            return Header(
                kind=f"{self.path.suffix[1:].upper()} ({found.dtype})",
                height=found.shape[0],
                width=found.shape[1],
                frames=found.frames,
                timed=found.times is not None,
                white=white,
                limit=limit,
                pixel=found.pixel,
                channels=() if found.channels == 1 else found.names if named else numbered,
                notes=tuple(notes),
            )

    def frames(self) -> Iterator[Frame]:
        with self._open() as found:
            depth = self._depth(found)
            for t in range(found.frames):
                try:
                    picture = mix_channels(partial(found.read, t, depth), range(found.channels), self.mix)
                except MemoryError:
                    raise
                except Exception as error:  # a damaged file may raise anything
                    raise DamagedError(self.path, t, found.frames, first_line(error)) from None
                require_finite(self.path, t, picture)
                yield Frame(np.nan if found.times is None else found.times[t], picture)

    def _depth(self, found: Series) -> int:
        return choose_plane(self.path, found.depth, self.plane)

    @contextmanager
    def _open(self) -> Iterator[Series]:
        vendor = VENDORS[self.path.suffix.lower()]
        with ExitStack() as stack:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what a reader misses in a file is no matter of ours
                    found = stack.enter_context(vendor.open(self.path, self.series))
            except (InputError, MemoryError):
                raise
            except ImportError as error:
                raise InputError(
                    f"{self.path} is a file of {vendor.maker}; reading it needs the package "
                    f"{error.name or vendor.package}: {EXTRA} adds it"
                ) from None
            except Exception as error:  # a damaged file may raise anything
                kind = self.path.suffix[1:].upper()
                raise InputError(f"{self.path} cannot be read as {kind}: {first_line(error)}") from None
            yield found
