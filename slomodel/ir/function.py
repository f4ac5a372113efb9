"""The record of one scalar function, which a `Map` node holds; see `slomodel.functions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.node import DType, Expr

if TYPE_CHECKING:
    import sympy as sp

Array = NDArray[np.generic]
Partial = Callable[..., Expr | None]

ANALYTIC = 99
"""Smoothness of a function with derivatives of every order on its domain."""

DISCONTINUOUS = -1
"""Smoothness of a function with jumps."""

WORST_ULPS = 4
"""Default error of a value in units in the last place, if a record does not state one."""


class RangeRule(Enum):
    """How values over intervals are enclosed where the record does not state `Monotonicity`."""

    FORM = "by propagating intervals through the stable form or the definition"
    OPERATION = "it is an operation of interval arithmetic"
    UNKNOWN = "not known: the function has values and derivatives, and no bounds"


@dataclass(frozen=True, slots=True)
class Monotonicity:
    """Where a function is monotone: its values at critical points and ends enclose it.

    - `critical_points[k]`: for a function of one number, all interior local extrema of the k-th
      derivative, increasing, to a relative error of 1e-15; k from 0 on, as far as they are known.
    - `by_operand[j]`: for a function of several numbers, the exact values of operand j at which
      monotonicity in it may change, whatever the others are; across a jump it need not be monotone.
    - `period`: if above 0, every critical point and pole recurs at this distance.
    - `poles`: points inside the domain at which the function is unbounded.
    - `image`: the closed interval that contains all values.
    """

    critical_points: tuple[tuple[float, ...], ...] = ((),)
    by_operand: tuple[tuple[float, ...], ...] = ()
    period: float = 0.0
    poles: tuple[float, ...] = ()
    image: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Decay:
    """How a derivative bounds those above it, everywhere: in tails, where it decays, they do too.

    |φ^(order + 1)| <= rate |φ^(order)| and |φ^(4)| <= fourth |φ^(order)|.
    """

    order: int
    rate: float
    fourth: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds per element, in cache on one thread, as `benchmarks/kernel_costs.py` measures.

    `numpy` is the time of a NumPy call, `numexpr` the time that one use adds to a numexpr kernel
    (inf if numexpr lacks the function).
    """

    numpy: float
    numexpr: float = math.inf


@dataclass(frozen=True, slots=True)
class Kink:
    """Points at which a function is less smooth than elsewhere.

    - `order`: it is C^order there; DISCONTINUOUS for a jump.
    - `at`: the condition for such points, as a graph in the operands; None if they may be anywhere.
    - `message`, `remedy`: the texts of a warning about it; `remedy` may be empty.
    """

    order: int
    at: Callable[..., Expr] | None = None
    message: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class C:
    """Declarations and definitions that C text needs to use a function; CUDA has the same library.

    - `library`: functions of the C library by name, and the level of vector forms that each has
      (1: glibc 2.22, 2: glibc 2.35, 0: none); all map numbers of type `real` to such numbers.
    - `source`: definitions of helper functions in terms of `real`, each `static inline`.
    """

    library: Mapping[str, int] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ScalarFunction:
    """One scalar function, stated once; every table of functions elsewhere is generated from here.

    Identity:
    - `meaning`: one line for users.
    - `definition`: SymPy form as a function of real symbols; its derivatives are the function's.
    - `sympy`: SymPy classes that are read as this function of their arguments.
    - `operand_types`, `result`: types of numbers, if they are not all real.

    Use in a model:
    - `signature`: name, parameters and defaults; empty if only operators or rewrites construct it.
    - `foreign_names`: its names in other languages, which a message translates.
    - `latex`: print form, with `{0}` for the operand; or the name of a command, as `\\exp`.

    Evaluation:
    - `numpy`: elementwise definition on NumPy arrays, the reference for every target; it also takes
      complex steps x + ih, and gives NaN outside the domain.
    - `partials`: the derivative by each operand as a graph in the operands, `None` for zero;
      given if the form that SymPy derives is not stable or not defined everywhere.
    - `stable`: the value as a graph of simpler functions, for targets that cannot spell it.
    - `spelling`: maps a target's name to a template in the operands, in the form of that target.
    - `c`: the library and helper functions that the spelling for C calls.
    - `cost`: time per element, required with a `spelling`; without one it is that of `stable`.
    - `exact`: values are operands up to their sign, or whole numbers, so that nothing is rounded.
    - `extended`: on numbers of extended precision, `numpy` has errors of as few of their last
      places as on doubles; other functions are computed in doubles alone.
    - `costly`: evaluation takes tens of cycles, so it is never computed twice to save a buffer.
    - `ulps`: worst error by target, in units in the last place of the value or, near zeros, of its
      largest term; WORST_ULPS for targets that are not listed.
    - `error_scale`: a function of the operands: the magnitude of the largest term, where values may
      be smaller than the terms they are computed from. Errors are counted in its last place.
    - `simplify`: exact identities on construction (`x * 1` is `x`): one operand, or a graph of the
      shape of the widest operand, or None.

    Domain and smoothness:
    - `domain`: for each operand the closed interval outside which the value is not finite.
    - `kinks`: points where it is not smooth; without any, it has derivatives of every order.
    - `smoothness_above`: `smoothness` as a function of lower bounds of the operands; given if a
      function is smoother on a subset of its domain (`huber` for delta >= 0).
    - `undefined`: the condition, as a graph in the operands, under which the value is undefined
      inside the domains of the operands.
    - `ranges`: its monotonicity, or another rule to enclose its values over intervals.
    - `decay`: how a derivative bounds those above it, if one does.
    - `unary_form`: for several operands, the value in terms of functions of one number, sums and
      products, for bounds that compose derivatives.
    """

    name: str
    arity: int
    definition: Callable[..., sp.Basic]
    numpy: Callable[..., Array]
    partials: tuple[Partial, ...] | None = None
    stable: Callable[..., Expr] | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)
    cost: Cost | None = None
    kinks: tuple[Kink, ...] = ()
    smoothness_above: Callable[..., int] | None = None
    domain: tuple[tuple[float, float], ...] = ()
    simplify: Callable[..., Expr | None] | None = None
    undefined: Callable[..., Expr] | None = None
    ranges: Monotonicity | RangeRule = RangeRule.FORM
    unary_form: Callable[..., Expr] | None = None
    decay: Decay | None = None
    exact: bool = False
    extended: bool = False
    costly: bool = False
    operand_types: tuple[DType, ...] = ()
    result: DType = "real"
    meaning: str = ""
    signature: str = ""
    foreign_names: tuple[str, ...] = ()
    sympy: tuple[type[sp.Basic], ...] = ()
    latex: str = ""
    c: C = C()
    ulps: Mapping[str, int] = field(default_factory=dict)
    error_scale: Callable[..., Array] | None = None

    def __post_init__(self) -> None:
        if self.name in _DEFINED:
            raise ValueError(f"the function {self.name} is defined twice")
        if self.spelling and self.cost is None:
            raise ValueError(f"the function {self.name} has spellings and no cost")
        _DEFINED[self.name] = self

    @property
    def smoothness(self) -> int:
        """The order k up to which it is C^k on its domain: 0 for a kink, 1, 2 or ANALYTIC."""
        return min((kink.order for kink in self.kinks), default=ANALYTIC)

    @property
    def monotonicity(self) -> Monotonicity | None:
        """The monotonicity that the record states, if any."""
        return self.ranges if isinstance(self.ranges, Monotonicity) else None

    def worst_ulps(self, target: str) -> int:
        """Worst error on a target, in units in the last place."""
        return self.ulps.get(target, WORST_ULPS)

    def __call__(self, *operands: Expr | float) -> Expr:
        """The node that applies the function to operands of one shape; numbers become constants."""
        return _CONSTRUCTORS[-1](self, *operands)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], ScalarFunction], tuple[str]]:
        return defined, (self.name,)


_DEFINED: dict[str, ScalarFunction] = {}


@dataclass(frozen=True, slots=True)
class Family:
    """Functions of one number, numbered from 0, each the derivative of the one before.

    - `name`: the names of its members, except for the first few, are this followed by n.
    - `sympy`: the SymPy class of (n, x) that is read as member n applied to x.
    - `member`: member n; its record is constructed on first use.
    """

    name: str
    sympy: type[sp.Basic]
    member: Callable[[int], ScalarFunction]

    def __post_init__(self) -> None:
        _FAMILIES.append(self)


_FAMILIES: list[Family] = []


def every_family() -> tuple[Family, ...]:
    """All families defined so far."""
    return tuple(_FAMILIES)


def defined(name: str) -> ScalarFunction:
    """The function of this name (used to load a pickled graph)."""
    for family in _FAMILIES:
        number = name.removeprefix(family.name)
        if name not in _DEFINED and number.isdecimal():
            return family.member(int(number))
    return _DEFINED[name]


def every_function() -> tuple[ScalarFunction, ...]:
    """All functions defined so far, in the order of their definitions."""
    return tuple(_DEFINED.values())


_CONSTRUCTORS: list[Callable[..., Expr]] = []


def constructs_calls(constructor: Callable[..., Expr]) -> Callable[..., Expr]:
    """Decorator that registers the constructor of the node `function(*operands)`.

    `ir.elementwise` uses it: nodes hold functions, so this module cannot import their constructors.
    """
    _CONSTRUCTORS.append(constructor)
    return constructor
