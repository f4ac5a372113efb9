"""Data in blocks of samples: folders of npy files, lists of arrays, arrays of Dask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.sizes import single_name
from slomodel.problem import Problem

Array: TypeAlias = NDArray[np.float64]
Block: TypeAlias = object
"""A path of an npy file, an array, or anything with a `shape` that numpy.asarray accepts."""

_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Partition:
    """The samples along the dim `dim`, in blocks of `sizes`; block k of each data array by name."""

    dim: str
    sizes: tuple[int, ...]
    blocks: Mapping[str, tuple[Block, ...]]

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def arrays(self, k: int) -> dict[str, Block]:
        """Block k of each array; files are memory-mapped, so that each is read once."""
        return {name: read(blocks[k]) for name, blocks in self.blocks.items()}

    def bytes(self, k: int) -> int:
        """The size of block k in memory."""
        shapes = (shape_of(blocks[k]) for blocks in self.blocks.values())
        return 8 * sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes)


def blocks_of(name: str, given: object) -> tuple[Block, ...]:
    """The blocks of one array: of a folder, in natural order of the names of its npy files."""
    if isinstance(given, (str, Path)):
        folder = Path(given)
        files = sorted(folder.glob("*.npy"), key=_natural) if folder.is_dir() else []
        if not files:
            message = f"`{folder}` for data `{name}` is not a folder with npy files"
            raise _error("E304", message, "write the blocks with numpy.save: x_000.npy, x_001.npy")
        return tuple(files)
    parts = getattr(given, "blocks", None)
    if parts is not None:  # an array of Dask
        return tuple(parts.ravel()) if hasattr(parts, "ravel") else tuple(parts)
    if isinstance(given, Iterable) and not isinstance(given, np.ndarray):
        found = tuple(Path(one) if isinstance(one, str) else one for one in given)
        if found:
            return found
    message = f"data `{name}` is not given in blocks"
    raise _error("E306", message, "give a folder of npy files, or a list of arrays or paths")


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _NUMBER.split(path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read(block: Block) -> Block:
    """A block as an array, a file memory-mapped. Raises DomainError for a file that is not npy."""
    if not isinstance(block, Path):
        return block if isinstance(block, np.ndarray) else np.asarray(block)
    try:
        return np.load(block, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _error("E305", f"cannot read the block `{block}`: {error}", "") from None


def shape_of(block: Block) -> tuple[int, ...]:
    """The shape of a block, which is not read for it."""
    found = read(block) if isinstance(block, Path) else block
    shape = getattr(found, "shape", None)
    return tuple(map(int, np.asarray(found).shape if shape is None else shape))


def candidates(
    problem: Problem, blocks: Mapping[str, Sequence[Block]], known: Mapping[str, int]
) -> list[Partition]:
    """The dims along which the blocks may be those of samples, with the blocks' sizes.

    All other axes are equal in all blocks and agree with the sizes that are known. Raises
    DomainError or ShapeError if there are none.
    """
    declared = {one.name: one for one in problem.data if not one.owner}
    for name in blocks:
        if name not in declared or declared[name].entries is not None:
            message = f"the model has no dense data `{name}`"
            raise _error("E309", message, f"there is {', '.join(f'`{one}`' for one in declared)}")
    shapes = {name: [shape_of(one) for one in parts] for name, parts in blocks.items()}
    for name, own in shapes.items():
        rank = len(declared[name].shape)
        if any(len(shape) != rank for shape in own):
            message = f"data `{name}` has {rank} axes, and a block has another number"
            raise ShapeError(Diagnostic("E307", message, declared[name].span))
    first = next(iter(blocks))
    dims = [single_name(dim) for dim in declared[first].shape]
    found: list[Partition] = []
    for dim in dict.fromkeys(one for one in dims if one is not None):
        sizes = [_sizes(problem, name, own, dim, known) for name, own in shapes.items()]
        if sizes[0] is not None and all(one == sizes[0] for one in sizes):
            found.append(Partition(dim, sizes[0], {k: tuple(v) for k, v in blocks.items()}))
    if not found:
        message = "the blocks of data do not agree along any dim"
        raise ShapeError(
            Diagnostic("E311", message, help="cut all arrays over the samples at the same places")
        )
    return found


def _sizes(
    problem: Problem,
    name: str,
    shapes: Sequence[tuple[int, ...]],
    dim: str,
    known: Mapping[str, int],
) -> tuple[int, ...] | None:
    """The sizes of the blocks along a dim; None if the blocks are not cut along it."""
    (declared,) = (one for one in problem.data if one.name == name)
    axes = [k for k, one in enumerate(declared.shape) if single_name(one) == dim]
    if len(axes) != 1 or declared.shape[axes[0]].const:
        return None
    (axis,) = axes
    for k, one in enumerate(declared.shape):
        size = shapes[0][k]
        other = single_name(one)
        agrees = other is None or other not in known or known[other] + one.const == size
        if k != axis and (any(shape[k] != size for shape in shapes) or not agrees):
            return None
    return tuple(shape[axis] for shape in shapes)


def _error(code: str, message: str, remedy: str) -> DomainError:
    return DomainError(Diagnostic(code, message, help=remedy))
