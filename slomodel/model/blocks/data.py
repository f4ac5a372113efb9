"""Data in blocks of samples: folders of npy files, lists of arrays, arrays of Dask."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.arrays import data_error
from slomodel.front.data.sizes import single_name
from slomodel.problem import DataDeclaration, Problem

Array: TypeAlias = NDArray[np.float64]
Block: TypeAlias = object
"""A path of an npy file, an array, or anything with a `shape` that numpy.asarray accepts.

Sparse data: a SciPy array, or a path of an npz file of scipy.sparse.save_npz.
"""

_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class BlockOfSamples:
    """One block of each data array by name, with the axis of its `size` samples if it has one."""

    blocks: Mapping[str, Block]
    axes: Mapping[str, int]
    size: int

    @property
    def is_in_files(self) -> bool:
        """Whether the block is read from files alone."""
        return all(isinstance(block, Path) for block in self.blocks.values())

    @property
    def lazy(self) -> dict[str, Block]:
        """The arrays of Dask among the blocks, which are computed when they are read."""
        known = {name: getattr(one, "__dask_graph__", None) for name, one in self.blocks.items()}
        return {name: self.blocks[name] for name, graph in known.items() if graph is not None}

    def with_blocks(self, others: Mapping[str, Block]) -> BlockOfSamples:
        """With other arrays in place of some."""
        return replace(self, blocks={**self.blocks, **others})

    def read(self) -> dict[str, Block]:
        """The arrays; files are memory-mapped, so that each is read once.

        Raises ShapeError for a file whose number of samples has changed.
        """
        result = {name: read(one) for name, one in self.blocks.items()}
        for name, axis in self.axes.items():
            size = shape_of(result[name])[axis]
            if size != self.size:
                message = f"data `{name}` had {self.size} samples before, and has {size}"
                remedy = "files must not change while a model reads them"
                raise ShapeError(Diagnostic("E311", message, help=remedy))
        return result


@dataclass(frozen=True, slots=True)
class Partition:
    """The samples along the dim `dim`, in blocks of `sizes`; block k of each data array by name.

    `axes` has the axis of the samples in each array. The samples may be the entries of sparse data,
    each block of which has the whole shape; there is no such axis then.
    """

    dim: str
    sizes: tuple[int, ...]
    blocks: Mapping[str, tuple[Block, ...]]
    axes: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.sizes)

    @property
    def filled(self) -> tuple[int, ...]:
        """The numbers of the blocks that have samples."""
        return tuple(k for k, size in enumerate(self.sizes) if size)

    def block(self, k: int) -> BlockOfSamples:
        """Block k by itself: what a worker of a cluster receives."""
        own = {name: blocks[k] for name, blocks in self.blocks.items()}
        return BlockOfSamples(own, self.axes, self.sizes[k])

    def name(self, k: int) -> str:
        """Block k in messages: its number, and its files."""
        files = [str(block[k]) for block in self.blocks.values() if isinstance(block[k], Path)]
        return f"block {k}" + (f": {', '.join(files)}" if files else "")

    def with_whole(self, wholes: Mapping[str, Array], axes: Mapping[str, int]) -> Partition:
        """With arrays over all samples, cut at the same places into views."""
        cuts = np.cumsum(self.sizes)[:-1]
        added = {name: tuple(np.split(one, cuts, axis=axes[name])) for name, one in wholes.items()}
        return replace(self, blocks={**self.blocks, **added}, axes={**self.axes, **axes})

    def bytes(self, k: int) -> int:
        """The size of block k in memory."""
        return sum(_bytes(blocks[k]) for blocks in self.blocks.values())


def blocks_of(name: str, given: object) -> tuple[Block, ...]:
    """The blocks of one array: of a folder, in natural order of the names of its npy files."""
    if isinstance(given, (str, Path)):
        folder = Path(given)
        result = (*folder.glob("*.npy"), *folder.glob("*.npz")) if folder.is_dir() else ()
        files = sorted(result, key=_natural)
        if not files:
            raise _no_files(name, folder)
        return tuple(files)
    parts = getattr(given, "blocks", None)
    if parts is not None:  # an array of Dask
        return tuple(parts.ravel()) if hasattr(parts, "ravel") else tuple(parts)
    if isinstance(given, Iterable) and not isinstance(given, np.ndarray) and not _is_matrix(given):
        result = tuple(Path(one) if isinstance(one, str) else one for one in given)
        if result:
            return result
    message = f"data `{name}` is not given in blocks"
    raise data_error(
        "E306", message, remedy="give a folder of npy files, or a list of arrays or paths"
    )


def _no_files(name: str, folder: Path) -> DomainError:
    remedy = "write the blocks with numpy.save: x_000.npy, x_001.npy"
    if not folder.exists():
        return data_error("E304", f"there is no folder `{folder}` for data `{name}`", remedy=remedy)
    if folder.is_file():
        message = f"`{folder}` for data `{name}` is a file, and blocks are several"
        return data_error("E304", message, remedy="give their folder, or a list of their paths")
    suffixes = {folder.suffix, *(one.suffix for one in folder.iterdir())}
    if not suffixes.isdisjoint((".zarr", ".parquet")) or (folder / "zarr.json").exists():
        remedy = (
            "zarr and parquet come through Dask: give dask.array.from_zarr(FOLDER), or"
            " dask.dataframe.read_parquet(FOLDER)[COLUMNS].to_dask_array().compute_chunk_sizes()"
        )
    message = f"`{folder}` for data `{name}` is not a folder with npy files, or npz if sparse"
    return data_error("E304", message, remedy=remedy)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _NUMBER.split(path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read(block: Block) -> Block:
    """A block as an array, a file memory-mapped, sparse data as a SciPy array.

    Raises DomainError for a file that is neither npy nor a sparse array.
    """
    if not isinstance(block, Path):
        return block if isinstance(block, np.ndarray) or _is_matrix(block) else np.asarray(block)
    try:
        if block.suffix == ".npz":
            from scipy.sparse import load_npz

            return load_npz(block)
        return np.load(block, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        message = f"cannot read the block `{block}`: {error}"
        raise data_error(
            "E305", message, remedy="a run with a checkpoint continues with resume"
        ) from None


def shape_of(block: Block) -> tuple[int, ...]:
    """The shape of a block, which is not read for it."""
    if isinstance(block, Path) and block.suffix == ".npz":
        with np.load(block, allow_pickle=False) as members:
            if "shape" in members:
                return tuple(map(int, members["shape"]))
    result = read(block) if isinstance(block, Path) else block
    shape = getattr(result, "shape", None)
    shape = np.asarray(result).shape if shape is None else shape
    if np.isnan(np.asarray(shape, dtype=np.float64)).any():
        message = "the sizes of the blocks of an array of Dask are not known"
        remedy = "call its compute_chunk_sizes()"
        raise data_error("E306", message, remedy=remedy)
    return tuple(map(int, shape))


def _bytes(block: Block) -> int:
    """The size of a block in memory."""
    if isinstance(block, Path) and block.suffix == ".npz":
        return 2 * block.stat().st_size
    if _is_matrix(block):
        return 24 * _entries(block)
    return 8 * int(np.prod(shape_of(block), dtype=np.int64))


def _is_matrix(value: object) -> bool:
    """Whether a value is a sparse matrix of SciPy, which is not imported for this question."""
    return "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(value)


def is_sparse(block: Block) -> bool:
    """Whether a block is sparse data."""
    return _is_matrix(block) or (isinstance(block, Path) and block.suffix == ".npz")


def candidates(
    problem: Problem, blocks: Mapping[str, Sequence[Block]], known: Mapping[str, int]
) -> list[Partition]:
    """The dims along which the blocks may be those of samples, with the blocks' sizes.

    All other axes are equal in all blocks and agree with the sizes that are known. Raises
    DomainError or ShapeError if there are none.
    """
    declared = {one.name: one for one in problem.data if not one.owner}
    if not blocks:
        raise data_error("E306", "no data are given in blocks", remedy='write {"X": "folder"}')
    for name in blocks:
        if name not in declared:
            message = f"the model has no data `{name}`"
            listed = ", ".join(f"`{one}`" for one in declared) or "none"
            raise data_error("E309", message, remedy=f"there is {listed}")
        if declared[name].entries is None and any(map(is_sparse, blocks[name])):
            message = f"a block of data `{name}` is sparse, and the model declares it as dense"
            raise data_error(
                "E306", message, remedy=f"declare it as sparse: `data {name}[…] sparse`"
            )
    shapes = {name: [shape_of(part) for part in parts] for name, parts in blocks.items()}
    for name, own in shapes.items():
        rank = len(declared[name].declared_shape)
        if any(len(shape) != rank for shape in own):
            message = f"data `{name}` has {rank} axes, and a block has another number"
            raise ShapeError(Diagnostic("E307", message, declared[name].span))
    first = next(iter(blocks))
    dims = [single_name(dim) for dim in declared[first].declared_shape]
    result: list[Partition] = []
    for dim in dict.fromkeys(one for one in dims if one is not None):
        sizes = [_sizes(problem, name, own, dim, known) for name, own in shapes.items()]
        if sizes[0] is not None and all(size == sizes[0] for size in sizes):
            axes = {name: axes_of(declared[name], dim)[0] for name in blocks}
            result.append(Partition(dim, sizes[0], {k: tuple(v) for k, v in blocks.items()}, axes))
    if len(blocks) == 1 and declared[first].entries is not None:
        result += _of_entries(declared[first], blocks[first], shapes[first], known)
    if not result:
        raise _no_partition(problem, shapes, known)
    if not any(one.total for one in result):
        raise data_error("E314", "no block has samples", remedy="give files with data")
    return result


def _of_entries(
    declared: DataDeclaration,
    blocks: Sequence[Block],
    shapes: Sequence[tuple[int, ...]],
    known: Mapping[str, int],
) -> list[Partition]:
    """The partition of the entries of sparse data, if each block has the whole shape."""
    whole = shapes[0]
    dims = [single_name(dim) for dim in declared.declared_shape]
    agrees = all(known.get(dim or "", size) == size for dim, size in zip(dims, whole, strict=True))
    if not agrees or any(shape != whole for shape in shapes):
        return []
    counts = tuple(map(_entries, blocks))
    return [Partition(str(declared.shape[0]), counts, {declared.name: tuple(blocks)}, {})]


def _entries(block: Block) -> int:
    """The number of stored entries of a block of sparse data."""
    result = read(block)
    count = getattr(result, "nnz", None)
    return int(np.count_nonzero(np.asarray(result))) if count is None else int(count)


def axes_of(declared: DataDeclaration, dim: str) -> list[int]:
    """The axes of an array along a dim."""
    return [k for k, one in enumerate(declared.declared_shape) if single_name(one) == dim]


def _no_partition(
    problem: Problem, shapes: Mapping[str, list[tuple[int, ...]]], known: Mapping[str, int]
) -> ShapeError:
    """The error for blocks that follow each other along no dim; it says along which each array's
    would.
    """
    lines = []
    for name, own in shapes.items():
        (declared,) = (one for one in problem.data if one.name == name)
        dims = dict.fromkeys(single_name(one) for one in declared.declared_shape)
        fitting = {dim: _sizes(problem, name, own, dim, known) for dim in dims if dim is not None}
        along = [
            f"`{dim}` ({', '.join(map(str, sizes[:4]))}{', …' if len(sizes) > 4 else ''})"
            for dim, sizes in fitting.items()
            if sizes is not None
        ]
        unlike = ", ".join(map(str, list(dict.fromkeys(own))[:3]))
        where = " or ".join(along) or f"no dim, with shapes {unlike}"
        lines.append(f"those of `{name}` are along {where}")
    message = f"the blocks of data do not agree along any dim: {'; '.join(lines)}"
    remedy = "cut all arrays over the samples at the same places, along one axis each"
    return ShapeError(Diagnostic("E311", message, help=remedy))


def _sizes(
    problem: Problem,
    name: str,
    shapes: Sequence[tuple[int, ...]],
    dim: str,
    known: Mapping[str, int],
) -> tuple[int, ...] | None:
    """The sizes of the blocks along a dim; None if the blocks are not cut along it."""
    (declared,) = (one for one in problem.data if one.name == name)
    axes = axes_of(declared, dim)
    if len(axes) != 1 or declared.declared_shape[axes[0]].const:
        return None
    (axis,) = axes
    for k, one in enumerate(declared.declared_shape):
        size = shapes[0][k]
        other = single_name(one)
        agrees = other is None or other not in known or known[other] + one.const == size
        if k != axis and (any(shape[k] != size for shape in shapes) or not agrees):
            return None
    return tuple(shape[axis] for shape in shapes)
