"""The key of a stage: a hash of all that its artefact depends on, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from video2pde import __version__
from video2pde.settings import RunSettings, Section, Settings

WHERE = {"workers", "cluster", "memory"}
"""Settings of the run that say who computes and where, not what."""


def stage_key(
    name: str,
    inputs: Sequence[str],
    settings: Any = (),
    *,
    version: str = __version__,
    code: str = "",
) -> str:
    """Hash what a stage's artefact depends on, as SHA-256 over canonical JSON.

    Parameters
    ----------
    name : the stage.
    inputs : the keys of the stages before it that it reads, and the SHA-256 of files.
    settings : the sections that it reads: one, or several in a sequence or by name, among plain values if need be.
        The number of workers, here or on a cluster, and the memory never count: they change no result.
    version : the package's.
    code : the hash of the code that computes it, see ``code.hash_code``.
    """
    content = {
        "stage": name,
        "inputs": list(inputs),
        "settings": plain(settings),
        "version": version,
        "code": code,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Turn settings into what JSON can hold; a section carries its name, so that two cannot be mistaken."""
    if isinstance(value, Section):
        left_out: Any = WHERE if isinstance(value, RunSettings) else {}
        if isinstance(value, Settings):
            left_out = {"run": WHERE}
        return [type(value).__name__, value.model_dump(mode="json", exclude=left_out)]
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be part of a stage's key")
