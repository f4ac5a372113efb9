"""From an objective to kernels: derivatives once, plans per set of sizes, arrays per bind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import NOTHING, Known, degree, gauss_newton, gradient, jvp, squares
from slomodel.calculus.squares import Square
from slomodel.codegen.cuda.target import CUDA, CUPY
from slomodel.codegen.entry import Entry, EntryName
from slomodel.codegen.layout import Default, Layout, Precision, Sizes
from slomodel.codegen.native.target import NATIVE
from slomodel.codegen.python.numexpr_target import NUMEXPR
from slomodel.codegen.python.numpy_target import NUMPY
from slomodel.codegen.python.target import PythonTarget, preparation
from slomodel.codegen.target import CompiledTarget, Maker, Target
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.ir.node import without_gc

Vector = NDArray[np.float64]

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (NATIVE, PythonTarget(NUMEXPR), PythonTarget(NUMPY), CUPY, CUDA)
}
"""All targets by name."""

ENTRIES: tuple[EntryName, ...] = ("value", "value_and_gradient", "hvp")


class Derivatives:
    """The entries of an objective; each is differentiated when first requested, for all sizes.

    `known` are facts about the data that save work; `given` is the gradient, if known. `structure`
    is an equal objective in which squares and polynomials are recognised, by default the same.
    `fused`: see `Entry`.
    """

    def __init__(
        self,
        objective: Expr,
        variables: Sequence[Input],
        known: Known = NOTHING,
        given: tuple[Expr, ...] | None = None,
        structure: Expr | None = None,
        fused: bool = False,
    ) -> None:
        self._fused = fused
        self.objective = objective
        self._structure = objective if structure is None else structure
        self._given = given
        self.variables = tuple(variables)
        self._known = known
        self._lock = threading.RLock()

    @cached_property
    def gradient(self) -> tuple[Expr, ...]:
        with self._lock:
            if self._given is not None:
                return self._given
            return gradient(self.objective, self.variables, self._known)

    @cached_property
    def directions(self) -> tuple[Input, ...]:
        return tuple(build.direction(node.name, node.shape) for node in self.variables)

    @cached_property
    def hessian_vector(self) -> tuple[Expr, ...]:
        with self._lock:
            return jvp(self.gradient, self._along)

    @cached_property
    def squares(self) -> tuple[Square, ...]:
        """Squares whose sum is the objective up to a constant; empty if there are none."""
        with self._lock:
            return squares(self._structure, self.variables)

    @cached_property
    def gauss_newton(self) -> tuple[Expr, ...]:
        """Product with the Gauss–Newton matrix, for an objective that is a sum of squares."""
        with self._lock:
            return gauss_newton(self.squares, self._along, self._known)

    @cached_property
    def degree(self) -> int | None:
        """Upper bound on the degree of a polynomial objective; None for others."""
        with self._lock:
            return degree(self._structure, self.variables)

    @property
    def _along(self) -> dict[Expr, Expr]:
        return dict(zip(self.variables, self.directions, strict=True))

    def entry(self, name: EntryName) -> Entry:
        """The entry of this name."""
        if name == "value":
            return Entry(name, self.objective)
        if name == "value_and_gradient":
            return Entry(name, self.objective, self.gradient, fused=self._fused)
        products = self.hessian_vector if name == "hvp" else self.gauss_newton
        return Entry(name, None, products, self.directions)


class Compiled:
    """Source and functions for one set of sizes and one target; holds no data."""

    def __init__(
        self,
        name: str,
        derivatives: Derivatives,
        data: Sequence[Input],
        numbers: Mapping[str, int],
        target: Target,
        precision: Precision = "float64",
        defaults: Mapping[Input, Default] | None = None,
        prepared: Mapping[Input, Expr] | None = None,
        attributes: Mapping[Input, frozenset[str]] | None = None,
    ) -> None:
        self.name = name
        self.numbers = dict(numbers)
        self.target = target
        self.derivatives = derivatives
        self.precision: Precision = precision
        sizes = Sizes(tuple(numbers))
        result = prepared or {}
        every = (*data, *result)
        own = (derivatives.variables, every, sizes, precision, defaults or {}, result)
        self._layout = Layout(*own, attributes or {})
        self._makers: dict[EntryName, Maker] = {}
        self._begun: dict[EntryName, Callable[[], Maker]] = {}
        self._prepare: Callable[[Mapping[str, Vector]], Mapping[str, Vector]] | None = None
        self._lock = threading.RLock()

    def serves(self, derivatives: Derivatives, numbers: Mapping[str, int], target: Target) -> bool:
        """Whether these kernels belong to the given derivatives, sizes and target."""
        same = self.derivatives is derivatives and self.target is target
        return same and self.numbers == dict(numbers)

    @without_gc()
    def maker(self, name: EntryName) -> Maker:
        """The constructor of the function of this name from data."""
        with self._lock:
            if name not in self._makers:
                begun = self._begun.pop(name, None)
                if begun is None:
                    entry = self.derivatives.entry(name)
                    result = self.target.maker(self.name, entry, self._layout, self.numbers)
                else:
                    result = begun()
                self._makers[name] = result
            return self._makers[name]

    def begin(self, name: EntryName) -> None:
        """Start to compile the function of this name, where a compiler can do so meanwhile."""
        # Every run needs one, and most find it compiled.
        if name not in self._makers:
            self._begin(name)

    @without_gc()
    def _begin(self, name: EntryName) -> None:
        with self._lock:
            if name in self._makers or name in self._begun:
                return
            if isinstance(self.target, CompiledTarget):
                entry = self.derivatives.entry(name)
                begun = self.target.begin(self.name, entry, self._layout, self.numbers)
                if begun is not None:
                    self._begun[name] = begun

    @property
    def given(self) -> tuple[Input, ...]:
        """The data given by the caller."""
        return self._layout.given

    @property
    def prepared(self) -> Mapping[Input, Expr]:
        """The data computed from other data, with their graphs."""
        return self._layout.prepared

    def over(self, derivatives: Derivatives, prepared: Mapping[Input, Expr]) -> Compiled:
        """Kernels of another function of the same data, in double precision."""
        own, layout = self.target, self._layout
        return Compiled(
            *(self.name, derivatives, layout.given, self.numbers, own),
            "float64",
            layout.defaults,
            prepared,
            layout.attributes,
        )

    @without_gc()
    def source(self, names: Sequence[EntryName] = ENTRIES) -> str:
        """The source of these entries; the text of each is the text that runs."""
        entries = [self.derivatives.entry(name) for name in names]
        return self.target.source(self.name, entries, self._layout, self.numbers)

    def completed(self, data: Mapping[str, Vector]) -> Mapping[str, Vector]:
        """The data with the arrays prepared from them."""
        if not self._layout.prepared:
            return data
        with self._lock:
            if self._prepare is None:
                exact = replace(self._layout, precision="float64")
                self._prepare = preparation(self.name, exact, self.numbers)
        return {**data, **self._prepare(data)}


class Evaluate(Protocol):
    """A generated function of vectors; if the entry has arrays, the last vector receives them."""

    def __call__(self, *vectors: Vector) -> float: ...


class _Own(threading.local):
    """Functions of one thread by name.

    `fresh` maps a vector (n,) to the value and a new gradient; None before the first request, or if
    that is not faster than filling a given array.
    """

    fresh: Callable[[Vector], tuple[float, Vector]] | None = None


class Kernels:
    """The generated functions over given data. Each thread has its own working arrays."""

    def __init__(self, compiled: Compiled, data: Mapping[str, Vector]) -> None:
        self.compiled = compiled
        self.data = data
        self.own = _Own()
        self._lock = threading.RLock()
        self._completed: Mapping[str, Vector] | None = None

    def made(self, name: EntryName) -> Evaluate | None:
        """The function of this name for the calling thread, where it has been compiled."""
        result: Evaluate | None = getattr(self.own, name, None)
        return result

    def function(self, name: EntryName) -> Evaluate:
        """The function of this name for the calling thread."""
        result = self.made(name)
        if result is None:
            result = self.compiled.maker(name)(self._complete())
            setattr(self.own, name, result)
            if name == "value_and_gradient":
                self.own.fresh = getattr(result, "fresh", None)
        return result

    def _complete(self) -> Mapping[str, Vector]:
        """The data and the arrays prepared from them, which are computed on first use.

        Real numbers are rounded to the kernels' precision as the last step.
        """
        with self._lock:
            if self._completed is None:
                kind = self.compiled.precision
                # NumPy's float32 of 1e300 is inf; the caller sees it as a non-finite value.
                with np.errstate(over="ignore"):
                    self._completed = {
                        name: array if array.dtype.kind == "i" else array.astype(kind, copy=False)
                        for name, array in self.compiled.completed(self.data).items()
                    }
            return self._completed
