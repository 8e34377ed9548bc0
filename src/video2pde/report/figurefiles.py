"""A run's figures as files for a paper, and as smaller pictures for the page; drawn over several processes.

A figure takes Matplotlib a third of a second in one thread, and a run has thirty. Everything that is drawn lies in the
run's folder, so that processes beside the run (``beside``) need no more than a figure's name.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from video2pde.files import atomic_path
from video2pde.record import Run
from video2pde.report import style
from video2pde.report.beside import Beside
from video2pde.report.figures import collect_figures, Drawing, file_name, PAGE, SETTLED

FORMATS = ("png", "pdf")
INDEX = "figures.txt"


class FigureFiles:
    """Write a run's figures: those of the page first, then the other PNGs, and PDFs, if asked for, last; none twice.

    Parameters
    ----------
    folder : of the figures, in that of the run.
    pdf : write PDFs, too.
    workers : processes that draw, this one included. More than one need the run's artefacts in its folder.
    """

    def __init__(self, folder: Path, pdf: bool = False, workers: int = 1) -> None:
        self._folder, self._pdf = folder, pdf
        # a figure holds its pictures: it is kept for its PDF alone
        self._drawn: dict[str, Figure | None] = {}
        self._pictures: dict[str, bytes] = {}
        # a PDF is made from the figure that the PNG was, and figures stay in their process
        self._beside = Beside(folder, 0 if pdf else workers - 1)

    def draw_ahead(self, run: Run) -> None:
        """Begin with the figures that no later stage changes, where there are other processes to draw them."""
        self._beside.begin([name for name, _ in collect_figures(run) if name.startswith(SETTLED)])

    def draw_page(self, run: Run) -> Mapping[str, bytes]:
        """Write the page's figures as PNG, those that are not there yet, and return small ones for it, by name."""
        self._draw([drawing for drawing in collect_figures(run) if drawing[0] in PAGE])
        return self._pictures

    def draw_rest(self, run: Run) -> None:
        """Write every other figure as PNG, then all as PDF, if asked for; remove those that only an earlier run had."""
        drawings = collect_figures(run)
        self._draw(drawings)
        for name, figure in self._drawn.items():
            style.save_pdf(figure, self._folder / name)
        self._drawn.clear()
        _forget_old(self._folder, [name for name, _ in drawings])

    def close(self) -> None:
        """Let the other processes go."""
        self._beside.close()

    def _draw(self, drawings: Sequence[Drawing]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        todo = {name: draw for name, draw in drawings if name not in self._drawn}
        self._beside.begin(list(todo))
        # drawing makes and drops very many small objects; what was there before need not be searched each time
        gc.freeze()
        while todo:
            # from the end, where the others have not begun yet; what they are at comes last
            name = next((name for name in reversed(todo) if not self._beside.has_begun(name)), next(iter(todo)))
            draw, figure = todo.pop(name), None
            if not self._beside.fetch(name):
                with style.apply():
                    figure = draw()
                    style.save_png(figure, self._folder / name)
            self._drawn[name] = figure if self._pdf else None
            if name in PAGE:
                self._pictures[name] = _halve(self._folder / f"{name}.png")
        gc.unfreeze()


def _halve(path: Path) -> bytes:
    """Return a picture at half its size, as PNG."""
    data = io.BytesIO()
    with Image.open(path) as picture:
        picture.reduce(2).save(data, "png")
    return data.getvalue()


def _forget_old(folder: Path, written: list[str]) -> None:
    """Remove the figures listed by an earlier run that were not drawn again, and list what there is now."""
    index = folder / INDEX
    known = index.read_text(encoding="utf-8").split() if index.is_file() else []
    for name in known:
        if name not in written and name == file_name(name):
            for suffix in FORMATS:
                (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    with atomic_path(index) as temporary:
        temporary.write_text("\n".join(written) + "\n", encoding="utf-8")
