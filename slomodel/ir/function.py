"""The record of one scalar function, which a `Map` node holds; `slomodel.functions` fills them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import sympy as sp

    from slomodel.ir.expr import Expr

DType = Literal["real", "bool"]
Array = NDArray[np.generic]
Partial = Callable[..., "Expr | None"]

ANALYTIC = 99
"""Smoothness of a function with derivatives of every order on its domain."""


@dataclass(frozen=True, slots=True)
class Monotony:
    """Where a function of one number and its derivatives turn, to enclose them over intervals.

    - `turns[k]`: all interior points where the k-th derivative goes from rising to falling or
      back, increasing, to a relative error of 1e-15; k from 0 on, as far as they are known.
    - `period`: above 0, every turn and pole comes again at this distance.
    - `poles`: points at which the function is not bounded, inside its domain.
    - `image`: the closed interval that all values lie in.
    - `ulps`: steps of the last place by which `numpy` may be off.
    """

    turns: tuple[tuple[float, ...], ...] = ((),)
    period: float = 0.0
    poles: tuple[float, ...] = ()
    image: tuple[float, float] = (-math.inf, math.inf)
    ulps: int = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds per element, in cache on one thread, as `benchmarks/kernel_costs.py` measures.

    `numpy` is that of a NumPy call, `numexpr` what one use adds to a numexpr kernel (inf where
    numexpr lacks the function).
    """

    numpy: float
    numexpr: float = math.inf


@dataclass(frozen=True, eq=False, slots=True)
class ScalarFunction:
    """One scalar function, stated once.

    - `definition`: SymPy form as a function of real symbols; its derivatives are the function's.
    - `numpy`: elementwise meaning, NumPy arrays in and out (the oracle of every target).
    - `partials`: the derivative by each operand as a graph in the operands, `None` for zero:
      given where the form that SymPy derives is not stable or not defined everywhere.
    - `stable`: the value as a graph of simpler functions, for targets that cannot spell it.
    - `spelling`: target name to a template in the operands (`codegen` says what each target needs).
    - `cost`: time per element, required with a `spelling`; without one it is that of `stable`.
    - `smoothness`: how often continuously differentiable on the domain (0 kink, 1, 2, ANALYTIC).
    - `smoothness_above`: the same as a function of lower bounds of the operands; given where a
      function is smoother on a part of its domain (`huber` for delta >= 0).
    - `domain`: for each operand the closed interval outside which the value is not finite.
    - `simplify`: exact identities on construction (`x * 1` is `x`): one operand, or a graph of the
      shape of the widest operand, or None.
    - `monotony`: where it turns; without it, intervals are propagated through the definition.
    - `costly`: evaluation takes tens of cycles, so it is never computed twice to save a buffer.
    """

    name: str
    arity: int
    definition: Callable[..., sp.Basic]
    numpy: Callable[..., Array]
    partials: tuple[Partial, ...] | None = None
    stable: Callable[..., Expr] | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)
    cost: Cost | None = None
    smoothness: int = ANALYTIC
    smoothness_above: Callable[..., int] | None = None
    domain: tuple[tuple[float, float], ...] = ()
    simplify: Callable[..., Expr | None] | None = None
    monotony: Monotony | None = None
    costly: bool = False
    operand_types: tuple[DType, ...] = ()
    result: DType = "real"

    def __post_init__(self) -> None:
        if self.name in _DEFINED:
            raise ValueError(f"the function {self.name} is defined twice")
        if self.spelling and self.cost is None:
            raise ValueError(f"the function {self.name} has spellings and no cost")
        _DEFINED[self.name] = self

    def __call__(self, *operands: Expr | float) -> Expr:
        """The function applied by `build.apply`; numbers are constants."""
        from slomodel.ir.build import apply, const

        return apply(self, *(const(o) if isinstance(o, (int, float)) else o for o in operands))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], ScalarFunction], tuple[str]]:
        return defined, (self.name,)


_DEFINED: dict[str, ScalarFunction] = {}


def defined(name: str) -> ScalarFunction:
    """The function of this name (used to load a pickled graph)."""
    return _DEFINED[name]
