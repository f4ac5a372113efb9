"""Starts: the vector that a model's `init`s describe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.bind import Binding
from slomodel.ir.dims import concrete
from slomodel.problem import Init, Problem

Array = NDArray[np.float64]


# Of its own, so that a start is not the very numbers that a user drew with the same seed.
_STREAM = 0x510


def start(problem: Problem, binding: Binding, seed: int) -> Array:
    """A start (n,): each variable as its `init` says, drawn in declaration order.

    Raises DomainError for a seed that is no whole number from 0 on.
    """
    given: object = seed
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or seed < 0:
        message = f"a seed is a whole number from 0 on, not {seed!r}"
        raise DomainError(Diagnostic("E602", message, help="give a seed such as 0 or 1"))
    rng = np.random.default_rng([_STREAM, int(seed)])
    parts = [
        _drawn(variable.init, concrete(variable.shape, binding.sizes), binding, rng).ravel()
        for variable in problem.variables
    ]
    return np.concatenate(parts)


def _drawn(init: Init, shape: tuple[int, ...], binding: Binding, rng: np.random.Generator) -> Array:
    if init.kind == "uniform":
        low, high = init.parameters
        return np.asarray(rng.uniform(low, high, shape))
    if init.kind == "normal":
        mean, deviation = init.parameters
        return np.asarray(rng.normal(mean, deviation, shape))
    if init.kind == "eye":
        return np.eye(shape[0], shape[1])
    if init.kind == "data":
        if init.array not in binding.arrays:
            message = f"the start is data `{init.array}`, which has no values yet"
            remedy = f"give data={{{init.array!r}: …}}, or x0="
            raise ShapeError(Diagnostic("E706", message, help=remedy))
        return binding.arrays[init.array].copy()
    value = {"zeros": 0.0, "ones": 1.0}.get(init.kind)
    return np.full(shape, init.parameters[0] if value is None else value)
