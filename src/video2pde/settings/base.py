"""What all sections of the settings share: their kind, and the numbers that they hold."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=1e-12, le=1e12)]
LibraryName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]{0,39}$")]
"""It names files too: letters, digits, spaces and _ . + - alone, 40 at most."""

BYTES = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?)?B", re.IGNORECASE)
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
LEAST_BYTES = 64 * 10**6


def count_bytes(text: str) -> int:
    """Read an amount of memory.

    Examples
    --------
    >>> count_bytes("4GB"), count_bytes("1.5 GiB")
    (4000000000, 1610612736)
    """
    found = BYTES.fullmatch(text.strip())
    size = 0 if found is None else round(float(found[1]) * UNITS[(found[2] or "").upper()])
    if size < LEAST_BYTES:
        raise ValueError(f"'{text}' is no amount of memory of at least 64 MB; write it as '4GB', '500MB' or '2GiB'")
    return size


def _check_bytes(text: str) -> str:
    count_bytes(text)
    return text


Bytes = Annotated[str, AfterValidator(_check_bytes)]


class Section(BaseModel):
    """Hold one stage's settings: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
