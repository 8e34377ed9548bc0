"""Tables as a study's page shows them: terms written as formulas."""

from __future__ import annotations

from video2pde.report.document import Cell, Table
from video2pde.report.sheets import Sheet, to_table
from video2pde.terms import CATALOGUE
from video2pde.terms.words import describe


def show_table(sheet: Sheet) -> Table:
    """Show a sheet with its terms written as formulas."""
    table = to_table(sheet)
    places = {k for k, entry in enumerate(sheet.entries) if entry.key in ("term", "terms")}
    rows = tuple(tuple(_formula(c) if k in places else c for k, c in enumerate(row)) for row in table.rows)
    return Table(table.columns, rows, table.caption)


def _formula(cell: Cell) -> Cell:
    return write_terms(cell) if isinstance(cell, str) else cell


def write_terms(names: str) -> str:
    """Write the catalogue's names in a list of terms as formulas; those of a user's own terms stay."""
    return ", ".join(describe(CATALOGUE[name]).text if name in CATALOGUE else name for name in names.split(", "))
