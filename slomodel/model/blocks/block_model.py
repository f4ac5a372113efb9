"""A model over blocks of samples: value, gradient, Hessian products, and runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from slomodel.codegen.runtime import threads as limited
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Point, Vector
from slomodel.ir.dims import named
from slomodel.ir.walk import inputs, postorder
from slomodel.model.blocks.compressed import compressed
from slomodel.model.blocks.data import Partition, axes_of, blocks_of, candidates
from slomodel.model.blocks.evaluate import BlockKernels, Executor, NumberedBlock, Streamed, reading
from slomodel.model.blocks.objective import BlockConstraints, BlockObjective, BlockProver
from slomodel.model.blocks.samples import (
    SampleSum,
    checks_of_samples,
    is_sum_over,
    with_whole_size,
)
from slomodel.model.model import Model
from slomodel.model.multistart import Starts, from_starts
from slomodel.model.waiting import waiting
from slomodel.problem import Problem
from slomodel.solve import Callback, Progress, Solution, solve
from slomodel.solve.constrained.entry import solve_constrained
from slomodel.solve.options import whole
from slomodel.solve.run_options import RunOptions

if TYPE_CHECKING:
    from slomodel.bounds import Bounds

MEMORY = 2**28
"""Bytes of blocks that are cached in memory between evaluations."""


class BlockModel:
    """A model whose data over samples come in blocks; see `over_blocks`.

    The objective is a sum over blocks and a part without samples. Blocks are evaluated one after
    another, or by the workers of a cluster, and their results are added in an order that depends on
    the blocks alone.
    """

    def __init__(
        self,
        model: Model,
        data: Mapping[str, object],
        dim: str | None,
        memory: int,
        client: object,
        compress: bool,
    ) -> None:
        problem, recipe = model._problem, model._recipe
        if model._change is not None:
            message = "blocks are those of the model, not of its unconstrained form"
            raise DomainError(
                Diagnostic("E604", message, help="solve moves unconstrained variables")
            )
        blocks = {name: blocks_of(name, given) for name, given in data.items()}
        known = {**recipe.dims, **model._binding.sizes}
        own = [
            candidate
            for candidate in candidates(problem, blocks, known)
            if dim is None or candidate.dim == dim
        ]
        if not own:
            message = f"no data are in blocks along `{dim}`"
            raise DomainError(Diagnostic("E604", message, help="leave dim out"))
        fitting = [one for one in own if is_sum_over(problem, one.dim)]
        rows = [one for one in fitting if one.axes and known.get(one.dim, one.total) == one.total]
        fitting = rows or fitting  # rather than blocks of entries
        if len(fitting) > 1:
            names = " and ".join(f"`{one.dim}`" for one in fitting)
            message = f"the blocks may be along {names}"
            raise DomainError(Diagnostic("E604", message, help=f"give dim={own[0].dim!r}"))
        self._partition = _with_whole_arrays((fitting or own)[0], model)
        _check_constraints(problem, self._partition)
        self._recipe = replace(recipe, dims=_without(recipe.dims, self._partition.dim))
        self._memory = memory
        self._client = client
        self._compress = compress
        total = known.get(self._partition.dim, self._partition.total)
        if total != self._partition.total:
            message = f"dim `{self._partition.dim}` is {self._partition.total} in the blocks"
            raise DomainError(Diagnostic("E311", f"{message}, but {total} was given"))
        problem = with_whole_size(problem, self._partition.dim, total)
        # A model of the first block: it knows the variables, their sets and starts.
        known_checks = checks_of_samples(problem, self._partition.dim)
        with reading(self._blocks()[0]):
            first = {**self._recipe.data, **self._blocks()[0].data.read()}
            alone = replace(problem, checks=known_checks)
            self._first = Model._planned(replace(self._recipe, data=first), alone)
        # So that every process numbers the labels as the first block does.
        self._recipe = replace(self._recipe, labels=self._first.labels)
        self._first._binding.require_data()
        self._parts = self._sum(problem)
        self._users = self._objective(problem, self._parts)

    def __repr__(self) -> str:
        """The number of blocks, of samples, and of unknowns."""
        dim, total = self.samples
        count = len(self._partition.filled)
        return f"<BlockModel: `{dim}` = {total} in {count} blocks, {self.n} unknowns>"

    def _blocks(self) -> list[NumberedBlock]:
        """The blocks that have samples."""
        one = self._partition
        return [NumberedBlock(k, one.name(k), one.block(k), one.bytes(k)) for k in one.filled]

    def _sum(self, problem: Problem) -> SampleSum:
        """The parts of a problem in the user's or in unconstrained variables."""
        one = self._partition
        own = (one.dim, one.total, one.blocks.keys(), self._first._binding.sizes)
        return SampleSum(self._recipe, problem, *own)

    def _objective(self, problem: Problem, parts: SampleSum) -> BlockObjective:
        """The objective of a problem with these parts."""
        one, blocks = self._partition, self._blocks()
        kernels = BlockKernels(parts, self._memory)
        executor: Executor = Streamed(kernels, blocks)
        if self._compress:
            result = compressed(parts, blocks, Streamed(kernels, blocks), self._client)
            if result is None:
                raise _not_compressed(one.dim)
            executor = result
        elif self._client is not None:
            from slomodel.model.blocks.distributed_blocks import Distributed

            executor = Distributed(kernels, blocks, self._client)
        n = sum(int(np.prod(shape, dtype=int)) for shape in self._shapes(problem))
        return BlockObjective(n, executor, parts.rest, self._eps)

    @property
    def _eps(self) -> float:
        return float(np.finfo(self._first._compiled.precision).eps)

    def _shapes(self, problem: Problem) -> list[tuple[int, ...]]:
        inner = self._first.unconstrained if problem is not self._first._problem else self._first
        return list(inner.variables.values())

    @property
    def samples(self) -> tuple[str, int]:
        """The dim of the samples and their number."""
        return self._partition.dim, self._partition.total

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return self._first.n

    @property
    def axis_labels(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The labels along each axis of each variable that has labelled axes."""
        return self._first.axis_labels

    @property
    def variables(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable by name."""
        return self._first.variables

    def pack(self, values: Mapping[str, Any]) -> Vector:
        """The vector x (n,) of named arrays."""
        return self._first.pack(values)

    def unpack(self, x: Point) -> dict[str, Vector]:
        """Copies of the named arrays in a vector x (n,)."""
        return self._first.unpack(x)

    def x0(self, seed: int = 0) -> Vector:
        """A start (n,), drawn from the distributions in the model's `init`s."""
        return self._first.x0(seed)

    def value(self, x: Point | Solution) -> float:
        """The objective at x (n,)."""
        return self._users.value(self._first._point(x))

    def gradient(self, x: Point | Solution) -> Vector:
        """The gradient at x, both (n,)."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Point | Solution) -> tuple[float, Vector]:
        """The objective and its gradient at x (n,)."""
        return self._users.value_and_gradient(self._first._point(x))

    def hvp(self, x: Point | Solution, v: Point) -> Vector:
        """The product of the Hessian at x and v, all (n,)."""
        return self._users.hvp(self._first._point(x), self._first._vectors.vector(v))

    def bounds(self, center: Point | Solution, radius: float, effort: str = "default") -> Bounds:
        """Proved Lipschitz constants of gradient and Hessian over a ball about `center` (n,).

        As `Model.bounds`, one block after another: each leaves its own bounds and, where the number
        of unknowns permits, matrices that contain its Hessian at the centre and over the ball, or
        lie above it in the Loewner order. These are added up.
        """
        point = self._first._point(center)
        if not np.isfinite(point).all():
            message = "the centre is not finite"
            raise DomainError(Diagnostic("E606", message, help="give a finite centre"))
        with waiting(f"bounds of {self._first.name}"):
            return self._users.bounds(point, radius, effort)

    def solve(
        self,
        method: str = "auto",
        x0: Point | Solution | None = None,
        *,
        seed: int = 0,
        callback: Callback | None = None,
        progress: Progress | bool | None = None,
        threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        starts: int | None = None,
        **options: Any,
    ) -> Solution:
        """Minimise or maximise, as `Model.solve` does; runs from several starts follow each other.

        A file that is gone, or a cluster that is lost, ends a run at its best point.
        """
        for name, remedy in _ELSEWHERE.items():
            if options.pop(name, None) is not None:
                message = f"{name} cannot be combined with data in blocks"
                raise DomainError(Diagnostic("E604", message, help=remedy))
        alone: dict[str, Any] = {"checkpoint": checkpoint, "resume": resume, "callback": callback}
        run = partial(self._run, method)
        if starts is None:
            return run(x0, seed=seed, progress=progress, threads=threads, **alone, **options)
        sense = self._first._problem.sense
        checked, _ = RunOptions.of({**options, "seed": seed, "sense": sense})
        own = {name: value for name, value in options.items() if name != "max_time"}
        several = partial(run, None, callback=callback, threads=threads, **own)
        how = Starts(starts, None, None, checked, progress)
        return from_starts(several, self.x0, how, {"x0": x0, **alone})

    def _run(
        self,
        method: str,
        x0: Point | Solution | None,
        *,
        seed: int,
        callback: Callback | None = None,
        progress: Progress | bool | None = None,
        threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Solution:
        """One run."""
        first, inner = self._first, self._first.unconstrained
        parts, objective = self._parts, self._users
        if inner is not first:
            parts = self._sum(inner._problem)
            objective = self._objective(inner._problem, parts)
        options |= {
            "method": method,
            "sense": first._problem.sense,
            "callback": callback,
            "progress": progress,
            "unpack": first.unpack,
            "user": None if inner is first else first.from_unconstrained,
            "within": inner._within,
            "in_sets": inner._in_closed_sets,
            "checkpoint": checkpoint,
            "resume": resume,
            "seed": seed,
        }
        with limited(threads):
            start = first._first(x0, seed, resume is None)
            if parts.constraints is None:
                return solve(objective, start, prove=BlockProver(objective), **options)
            sign = -1.0 if first._problem.sense == "maximize" else 1.0
            own = parts.constraints._constraints()
            return solve_constrained(BlockConstraints(objective, own, sign), start, **options)


_ELSEWHERE = {
    "workers": "give over_blocks a client: the workers of a cluster evaluate the blocks",
    "client": "give it to over_blocks",
    "hops": "take starts=",
}
"""Options of `Model.solve` that runs over blocks do not have, and what there is."""


def _check_arguments(model: object, data: object) -> None:
    if not isinstance(model, Model) or not isinstance(data, Mapping):
        message = "over_blocks takes a compiled model, and a dict of data in blocks by name"
        remedy = 'slomodel.over_blocks(slomodel.compile(text), {"X": "folder"})'
        raise DomainError(Diagnostic("E602", message, help=remedy))


def _with_whole_arrays(partition: Partition, model: Model) -> Partition:
    """The partition with the data of the model over the same samples, which are in memory."""
    problem = model._problem
    given = model._recipe.self_contained(problem, model._binding).data
    axes = {
        one.name: axes_of(one, partition.dim)
        for one in problem.data
        if one.name in given and one.name not in partition.blocks and one.entries is None
    }
    along = {name: own[0] for name, own in axes.items() if len(own) == 1}
    wholes = {name: np.asarray(given[name]) for name in along}
    if all(one.shape[along[name]] == partition.total for name, one in wholes.items()):
        return partition.with_whole(wholes, along)
    return partition


def _check_constraints(problem: Problem, partition: Partition) -> None:
    """Raise DomainError for a constraint or a check that needs the samples of several blocks."""
    samples = named(partition.dim)
    for constraint in problem.constraints:
        over = [node for node in postorder(constraint.value) if samples in node.shape]
        if over or any(node.name in partition.blocks for node in inputs(constraint.value)):
            message = (
                f"the constraint `{constraint.text}` depends on samples along `{partition.dim}`"
            )
            remedy = "constraints of a model over blocks must not depend on the data in blocks"
            raise DomainError(Diagnostic("E604", message, constraint.span, help=remedy))
    tested = {check.span for check in checks_of_samples(problem, partition.dim)}
    for check in problem.checks:
        if not check.fault and check.span not in tested:
            message = f"the check `{check.text}` needs all samples along `{partition.dim}` at once"
            remedy = "leave it out, or state it for each sample"
            raise DomainError(Diagnostic("E604", message, check.span, help=remedy))


def _without(sizes: Mapping[str, int], dim: str) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if name != dim}


def _not_compressed(dim: str) -> DomainError:
    message = f"not all that depends on `{dim}` is in sums of squares that can be compressed"
    remedy = "leave compress out; a square has to be linear in the data, as in `sumsq(X - V @ X)`"
    return DomainError(Diagnostic("E604", message, help=remedy))


def over_blocks(
    model: Model,
    data: Mapping[str, object],
    *,
    dim: str | None = None,
    memory: int | None = None,
    client: object = None,
    compress: bool = False,
) -> BlockModel:
    """The model with data in blocks of samples, which need not fit in memory.

    `data` has, by name, a folder of npy files, a list of arrays or of paths, or an array of Dask,
    for data that the model lacks; arrays over the same samples that it has are cut at the same
    places. Blocks of sparse data are SciPy arrays, or npz files of `save_npz`, each with the rows
    of some samples or, of the whole shape, with some of the entries, each entry in one block. The
    objective has to be a sum or mean over the dim along which the blocks follow each other, plus a
    part without samples; `dim` names it if there are several. Constraints must not depend on
    samples. Files are read at each evaluation, except for `memory` bytes of blocks and working
    arrays [2²⁸], which stay in memory. With a `dask.distributed` client its workers evaluate the
    blocks. Results are the same bits wherever they are computed.

    With `compress` each block is read once: least squares over the blocks are replaced by those
    over the triangular factor of their data, which have a few rows. Runs evaluate that factor in
    this process. The result differs from the other by rounding errors relative to the data, not to
    the residual.
    """
    _check_arguments(model, data)
    most = MEMORY if memory is None else whole("memory", memory, 0)
    return BlockModel(model, data, dim, most, client, compress)
