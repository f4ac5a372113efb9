"""Dimensions: integers that are affine in named sizes, whose values are known only at planning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from slomodel.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Dim:
    """`const + sum(coefficient * name)`; equality is symbolic, so `10` and `h` differ.

    `terms` is sorted by name and without zero coefficients.
    """

    terms: tuple[tuple[str, int], ...] = ()
    const: int = 0

    def __add__(self, other: Dim | int) -> Dim:
        if isinstance(other, int):
            return Dim(self.terms, self.const + other)
        total = dict(self.terms)
        for name, coefficient in other.terms:
            total[name] = total.get(name, 0) + coefficient
        terms = tuple(sorted((n, c) for n, c in total.items() if c))
        return Dim(terms, self.const + other.const)

    def __mul__(self, factor: int) -> Dim:
        if factor == 0:
            return Dim()
        return Dim(tuple((n, c * factor) for n, c in self.terms), self.const * factor)

    def __sub__(self, other: Dim | int) -> Dim:
        return self + (-other if isinstance(other, int) else other * -1)

    @property
    def is_literal(self) -> bool:
        return not self.terms

    def size(self, sizes: Mapping[str, int]) -> int:
        """The value of this dim for given sizes.

        Raises ShapeError if the size of a name is not known yet or the result is negative.
        """
        total = self.const
        for name, coefficient in self.terms:
            if name not in sizes:
                raise ShapeError(f"the size of dim `{name}` is not known yet")
            total += coefficient * sizes[name]
        if total < 0:
            raise ShapeError(f"dim `{self}` would have the negative size {total}")
        return total

    def value(self, sizes: Mapping[str, int]) -> int:
        """The value for given sizes of all its names, as of a shift, which may be negative."""
        return self.const + sum(coefficient * sizes[name] for name, coefficient in self.terms)

    def __str__(self) -> str:
        text = ""
        for name, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            text += f" {sign} {factor}{name}" if text else f"{'-' * (sign == '-')}{factor}{name}"
        if self.const or not text:
            sign = "-" if self.const < 0 else "+"
            text += f" {sign} {abs(self.const)}" if text else str(self.const)
        return text


@dataclass(frozen=True, slots=True)
class SizePolynomial:
    """A sum of products of named sizes with rational factors, as in `n*(n - 1)/2`.

    `terms` is sorted by the names, each listed as often as it is a factor.
    """

    terms: tuple[tuple[tuple[str, ...], Fraction], ...] = ()

    @classmethod
    def of(cls, dim: Dim) -> SizePolynomial:
        terms = [((name,), Fraction(factor)) for name, factor in dim.terms]
        return cls._of([((), Fraction(dim.const)), *terms])

    @classmethod
    def _of(cls, terms: Iterable[tuple[tuple[str, ...], Fraction]]) -> SizePolynomial:
        total: dict[tuple[str, ...], Fraction] = {}
        for names, factor in terms:
            own = tuple(sorted(names))
            total[own] = total.get(own, Fraction()) + factor
        return cls(tuple(sorted((names, factor) for names, factor in total.items() if factor)))

    def __add__(self, other: SizePolynomial) -> SizePolynomial:
        return self._of((*self.terms, *other.terms))

    def __mul__(self, other: SizePolynomial) -> SizePolynomial:
        return self._of(
            (one + two, factor * by) for one, factor in self.terms for two, by in other.terms
        )

    @property
    def constant(self) -> Fraction | None:
        """The value, if it depends on no size; otherwise None."""
        if not self.terms:
            return Fraction()
        return self.terms[0][1] if self.names == frozenset() else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for names, _ in self.terms for name in names)

    def value(self, sizes: Mapping[str, int]) -> Fraction:
        """The value for given sizes of all its names."""
        factors = (factor * prod(sizes[name] for name in names) for names, factor in self.terms)
        return sum(factors, Fraction())

    def at(self, name: str, size: int) -> SizePolynomial:
        """The polynomial in the other sizes once one is known."""
        return self._of(
            (tuple(one for one in names if one != name), factor * size ** names.count(name))
            for names, factor in self.terms
        )


Shape = tuple[Dim, ...]


def named(name: str) -> Dim:
    """The dim of one named size."""
    return Dim(((name, 1),))


def literal(size: int) -> Dim:
    """A dim of known value."""
    return Dim((), size)


def show_shape(shape: Shape) -> str:
    """A shape as the language writes it: `[m, n]`, or `scalar`."""
    return f"[{', '.join(map(str, shape))}]" if shape else "scalar"


def concrete(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The values of the dims of a shape."""
    return tuple(dim.size(sizes) for dim in shape)


def number_of_elements(shape: Shape, sizes: Mapping[str, int]) -> int:
    """The number of elements of an array of this shape."""
    return prod(concrete(shape, sizes))


def resized(shape: Shape, axis: int, size: Dim) -> Shape:
    """The shape with another size of one axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])
