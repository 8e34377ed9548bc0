"""The state of a training between two chunks, and its file: resuming gives what an undisturbed run gives."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TYPE_CHECKING, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.files import atomic_write
from video2pde.flow import Flow
from video2pde.refinement.result import History
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings

Array = NDArray[np.float64]
State = TypeVar("State")
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint(Generic[State]):
    """Hold all that a training needs to go on.

    Parameters
    ----------
    training : the network and whatever moves it (a tree of arrays), with the step of the present phase.
    joint : whether the second phase has begun.
    rate_size, natural, start : sizes of the rate and of the coefficients, and the joint phase's first coefficients.
    pretrain_trace : (m, 2), step and data error. joint_trace : (n, 3 + terms), step, errors, coefficients.
    checks : (k, 3), step and held-out errors.
    """

    training: State
    joint: bool
    rate_size: float
    natural: Array
    start: Array
    pretrain_trace: Array
    joint_trace: Array
    checks: Array
    seconds: float

    @classmethod
    def begin(cls, training: State, terms: int) -> Checkpoint[State]:
        """Stand before the first step."""
        ones, empty = np.ones(terms), np.zeros((0, 3 + terms))
        return cls(
            training=training,
            joint=False,
            rate_size=1.0,
            natural=ones,
            start=ones,
            pretrain_trace=empty[:, :2],
            joint_trace=empty,
            checks=empty[:, :3],
            seconds=0.0,
        )

    def after(self, seconds: float) -> Checkpoint[State]:
        return replace(self, seconds=seconds)

    def pretrained(self, training: State, steps: Array, data: Array) -> Checkpoint[State]:
        rows = np.column_stack([steps, data])
        return replace(self, training=training, pretrain_trace=np.concatenate([self.pretrain_trace, rows]))

    def joined(self, training: State, rate_size: float, natural: Array, start: Array) -> Checkpoint[State]:
        return replace(self, training=training, joint=True, rate_size=rate_size, natural=natural, start=start)

    def trained(
        self, training: State, steps: Array, rows: Array, check: tuple[float, float, float]
    ) -> Checkpoint[State]:
        trace = np.concatenate([self.joint_trace, np.column_stack([steps, rows])])
        return replace(self, training=training, joint_trace=trace, checks=np.concatenate([self.checks, [check]]))

    def history(self) -> History:
        """Return the traces by name."""
        before, joint, checks = self.pretrain_trace, self.joint_trace, self.checks
        return History(
            pretrain_steps=before[:, 0],
            pretrain_data=before[:, 1],
            steps=joint[:, 0],
            data=joint[:, 1],
            residual=joint[:, 2],
            coefficients=joint[:, 3:],
            checked=checks[:, 0],
            held_out_data=checks[:, 1],
            held_out_residual=checks[:, 2],
        )


def fingerprint(
    field: Field,
    terms: Sequence[Term],
    velocity: Array,
    start: Sequence[float] | None,
    settings: RefinementSettings,
    flow: Flow | None = None,
) -> str:
    """Digest everything that a training depends on, so that a checkpoint is never continued with other inputs."""
    digest = hashlib.sha256(f"{FORMAT} {settings!r} {field.grid} {start}".encode())
    digest.update("".join(f"{term.name}: {term.strong}; " for term in terms).encode())
    mask = np.zeros(0, bool) if field.mask is None else field.mask
    blown = np.zeros(0) if flow is None else flow.velocity(field.times[[0, -1]], field.grid)
    for array in (field.values, field.times, velocity, mask, blown):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def save_checkpoint(path: Path, mark: str, state: Checkpoint[Any]) -> None:
    """Write the state to an ``.npz`` file, whole or not at all."""
    leaves: dict[str, Any] = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state.training))}
    rest: dict[str, Any] = {f.name: np.asarray(getattr(state, f.name)) for f in fields(state) if f.name != "training"}
    with atomic_write(path) as file:
        np.savez(file, mark=np.array(mark), **leaves, **rest)


def load_checkpoint(path: Path, mark: str, fresh: Checkpoint[State]) -> Checkpoint[State]:
    """Read a state; ``fresh`` gives its structure. A file of other data or settings is refused."""
    template, structure = jax.tree.flatten(fresh.training)
    try:
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["mark"]) != mark:
                raise InputError(
                    f"the checkpoint {path} belongs to other data, terms or settings; delete it or name another file"
                )
            leaves = [jnp.asarray(stored[f"leaf_{i}"]) for i in range(len(template))]
            rest: dict[str, Any] = {f.name: stored[f.name] for f in fields(fresh) if f.name != "training"}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not a checkpoint of the refinement ({error}); delete it to start anew") from None
    for name, kind in (("joint", bool), ("rate_size", float), ("seconds", float)):
        rest[name] = kind(rest[name])
    return Checkpoint(training=jax.tree.unflatten(structure, leaves), **rest)
