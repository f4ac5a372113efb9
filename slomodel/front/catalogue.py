"""Catalogue of the language's functions: signature, meaning, domain, smoothness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.elaboration.errors import suggestion
from slomodel.front.elaboration.functions.arguments import signature
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.functions.library import density_meant, library
from slomodel.functions import FUNCTIONS
from slomodel.ir.function import ANALYTIC, RangeRule, ScalarFunction


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """An entry of `slomodel functions`; domain and smoothness for scalar functions only.

    `text` is the declaration of a function that is written in the language, else empty.
    """

    name: str
    signature: str
    meaning: str
    is_scalar: bool
    domain: str = ""
    smoothness: str = ""
    has_bounds: bool = True
    text: str = ""

    def facts(self) -> dict[str, object]:
        """The entry as data for JSON."""
        kind = "by element" if self.is_scalar else "of arrays"
        kind = "density" if self.text else kind
        result: dict[str, object] = {
            "name": self.name,
            "signature": self.signature,
            "meaning": self.meaning,
            "kind": kind,
            "domain": self.domain or None,
            "smoothness": self.smoothness or None,
            "bounds": self.has_bounds,
        }
        return {**result, "text": self.text} if self.text else result


def catalogue() -> list[FunctionEntry]:
    """All functions of the language: the elementwise ones, those of arrays, the densities."""
    scalars = [_scalar(name, function) for name, function in FUNCTIONS.items()]
    arrays = [
        FunctionEntry(name, function.text, function.meaning, False)
        for name, function in ARRAY_FUNCTIONS.items()
    ]
    return scalars + arrays + densities()


def densities() -> list[FunctionEntry]:
    """The functions of the library, which are written in the language."""
    return [
        FunctionEntry(name, one.fn.head, one.meaning, False, text=one.fn.span.text)
        for name, one in library().items()
    ]


def entries_of(name: str) -> list[FunctionEntry]:
    """The functions with a given name (`max` has two). Raises DomainError for an unknown name."""
    every = catalogue()
    result = [entry for entry in every if entry.name == name]
    if not result:
        similar = density_meant(name) or suggestion(name, {entry.name for entry in every})
        remedy = similar or "see `slomodel functions`"
        message = f"unknown function `{name}`"
        raise DomainError(Diagnostic("E203", message, help=remedy))
    return result


def _scalar(name: str, function: ScalarFunction) -> FunctionEntry:
    parameters = [parameter.name for parameter in signature(function.signature).parameters]
    smoothness = _smoothness(function, parameters)
    domain, has_bounds = _domain(function, parameters), function.ranges is not RangeRule.UNKNOWN
    return FunctionEntry(
        name, function.signature, function.meaning, True, domain, smoothness, has_bounds
    )


def _domain(function: ScalarFunction, parameters: Sequence[str]) -> str:
    """The operands for which the value is finite, in words."""
    limits = [
        _limits(function, k, "x" if function.arity == 1 else name)
        for k, name in enumerate(parameters[: len(function.domain)])
    ]
    return ", ".join(filter(None, limits)) or "all numbers"


def _limits(function: ScalarFunction, k: int, name: str) -> str:
    """The domain of operand k in words; empty if it may be any number."""
    low, high = function.domain[k]
    ends = {}
    for end in (low, high):
        if math.isfinite(end):
            operands = [end if j == k else 1.0 for j in range(function.arity)]
            with np.errstate(all="ignore"):
                ends[end] = math.isfinite(float(function.numpy(*operands)))
    if len(ends) == 2:
        return f"{name} in {'[' if ends[low] else '('}{low:g}, {high:g}{']' if ends[high] else ')'}"
    if not ends:
        return ""
    ((end, is_inside),) = ends.items()
    return f"{name} {'>' if end == low else '<'}{'=' * is_inside} {end:g}"


def _smoothness(function: ScalarFunction, parameters: Sequence[str]) -> str:
    """The smoothness class, and the higher one for operands >= 0, if any."""
    whole = _class(function.smoothness)
    if function.smoothness_above is not None:
        for k, name in enumerate(parameters):
            limits = [0.0 if j == k else -math.inf for j in range(function.arity)]
            better = function.smoothness_above(*limits)
            if better > function.smoothness:
                return f"{_class(better)} for {name} >= 0, else {whole}"
    return whole


def _class(smoothness: int) -> str:
    if smoothness >= ANALYTIC:
        return "derivatives of every order"
    if smoothness < 0:
        return "jumps"
    return f"C{smoothness}" if smoothness else "kinks"
