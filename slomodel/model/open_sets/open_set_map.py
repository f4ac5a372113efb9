"""The interface of a change of variables from a whole space onto an open set.

Each map is given as a graph x(u), which is composed with the objective: derivatives, kernels and
bounds of f(x(u)) are those of any other objective, and bounds in u are proofs without further
argument. The inverse u(x) is needed for starts only and is computed in NumPy; where x is close to
the edge, u is the logarithm of the distance, so that x is recovered to a few rounding errors of
that distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.dims import Shape
from slomodel.ir.expr import Expr
from slomodel.problem import DeclaredSet, TupleCount

Array = NDArray[np.float64]

# Tolerance on the equations of a set for a given point: sums of 1, symmetry, diagonals of 1.
EQUAL = 1e-8
# Distance from the edge of a set, relative to its width, below which a run's message says so.
EDGE_OF_INTERVAL = 1e-6
# Distance from the end of a half-line below which a run's message says so, whatever the units.
EDGE_OF_HALF_LINE = 1e-13


@dataclass(frozen=True, slots=True)
class FreeShape:
    """The shape of u, and the counts of dims that are not affine in those of the model."""

    shape: Shape
    counts: tuple[TupleCount, ...] = ()


class OpenSetMap(Protocol):
    """A smooth bijection u → x(u) from a whole space onto an open set of arrays x.

    There is no Jacobian term anywhere: an objective f becomes f(x(u)), which has the same minima.
    """

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        """The shape of u for a variable x of a given name and shape."""
        ...

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        """The graph of x(u)."""
        ...

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        """The reason why x is not in the set, as what follows its name; empty if it is."""
        ...

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        """The u for which x(u) is x, a point of the set."""
        ...

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        """The elements of u on a logarithmic scale: adding 1 multiplies a distance by e."""
        ...

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        """Whether x(u) is at an edge of the set, as near as the constants of this module say.

        There x(u) hardly depends on u, so that gradients in u may be small whatever the objective.
        """
        ...

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        """The point that `init number` stands for."""
        ...


@dataclass(frozen=True, slots=True)
class BoxEnds:
    """The values of the ends of a box, of x's shape or scalar; None is infinite."""

    low: Array | None = None
    high: Array | None = None


def first_element(x: Array, wrong: NDArray[np.bool_]) -> str:
    """The first marked element of x, as what follows the name of x in a message."""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{place(at)} is {x[at]:g}"


def place(at: tuple[int, ...]) -> str:
    """An index as text, empty for a number."""
    return f"[{', '.join(map(str, at))}]" if at else ""
