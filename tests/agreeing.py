"""Targets against the reference interpreter on random graphs, many of them in one C file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from strategies import Example

import slomodel
from slomodel.codegen.entry import Entry
from slomodel.codegen.kernels import ENTRIES, TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.layout import Layout, Sizes
from slomodel.codegen.native.binding import bound
from slomodel.codegen.native.source import joined, unit
from slomodel.codegen.native.time import Printer
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Expr, Input, Map, Scan
from slomodel.ir.walk import postorder
from slomodel.reference import Array, meaning

ALLOWED = 1e-12
"""Largest allowed difference, relative to the sum of the magnitudes of the terms."""
_NUDGE = 1e-7
_DRAWS = 3


@dataclass(frozen=True)
class Question:
    """Roots (value, gradient, Hessian-vector product) with the inputs to evaluate them at."""

    derivatives: Derivatives
    data: tuple[Input, ...]
    values: dict[Input, Array]
    sizes: dict[str, int]

    @property
    def roots(self) -> dict[str, tuple[Expr, ...]]:
        own = self.derivatives
        return {"value": (own.objective,), "gradient": own.gradient, "hvp": own.hessian_vector}

    @property
    def x(self) -> Array:
        return flat([self.values[node] for node in self.derivatives.variables])

    @property
    def v(self) -> Array:
        return flat([self.values[node] for node in self.derivatives.directions])

    @property
    def given(self) -> dict[str, Array]:
        return {node.name: np.array(self.values[node], float) for node in self.data}


def asked(example: Example, rng: np.random.Generator) -> Question:
    """The case of an example, with a random direction."""
    derivatives = Derivatives(example.objective, example.variables)
    values: dict[Input, Array] = dict(example.values)
    for node, variable in zip(derivatives.directions, example.variables, strict=True):
        values[node] = rng.normal(size=np.shape(example.values[variable]))
    return Question(derivatives, example.data, values, example.sizes)


def of_model(model: slomodel.Model, rng: np.random.Generator) -> Question:
    """The case of a model near its start, as rewritten by the passes."""
    compiled, given = model._compiled, model._kernels._complete()
    own = compiled.derivatives
    x = model.x0() + 0.1 * rng.normal(size=model.n)
    values: dict[Input, Array] = {}
    for nodes, vector in ((own.variables, x), (own.directions, rng.normal(size=model.n))):
        end = 0
        for node in nodes:
            shape = concrete(node.shape, compiled.numbers)
            start, end = end, end + int(np.prod(shape))
            values[node] = vector[start:end].reshape(shape)
    data = compiled._layout.data
    values |= {node: np.asarray(given[node.name]) for node in data if node.name in given}
    for node in data:
        values.setdefault(node, np.asarray(compiled._layout.defaults.get(node)))
    return Question(own, tuple(data), values, dict(compiled.numbers))


def flat(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.zeros(0)


def expected(question: Question, rng: np.random.Generator) -> dict[str, tuple[Array, float]]:
    """The results of the reference interpreter, and the magnitudes of their terms.

    The latter is the change of a result when every intermediate number has a small relative error,
    divided by that error: sums of terms that cancel change by their largest term.
    """
    exact = _evaluated(question, None)
    moved = [_evaluated(question, rng) for _ in range(_DRAWS)]
    found = {}
    for name, value in exact.items():
        with np.errstate(all="ignore"):
            shifts = [np.abs(other[name] - value) / _NUDGE for other in moved]
            own = np.abs(value[np.isfinite(value)])
        largest = max(float(np.max(one[np.isfinite(one)], initial=0.0)) for one in shifts)
        found[name] = value, max(largest, float(np.max(own, initial=0.0)))
    return found


def _evaluated(question: Question, rng: np.random.Generator | None) -> dict[str, Array]:
    every = tuple(root for roots in question.roots.values() for root in roots)
    known: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in postorder(*every):
            if isinstance(node, Input):
                result = np.asarray(question.values[node])
            else:
                operands = [known[operand] for operand in node.operands]
                result = meaning(node, operands, question.sizes)
            rounds = isinstance(node, (Map, Einsum, Scan)) and node.dtype == "real"
            if rng is not None and rounds:
                result = result * (1.0 + _NUDGE * rng.uniform(-1.0, 1.0, np.shape(result)))
            known[node] = result
        return {
            name: flat([known[root] for root in roots]) for name, roots in question.roots.items()
        }


def answers(question: Question, kernels: Kernels) -> dict[str, Array]:
    """The results of the kernels, evaluated twice: the first call leaves numbers in its buffers."""
    return _answers(question, kernels.function)


def _answers(question: Question, function: object) -> dict[str, Array]:
    x, v = question.x, question.v
    for point in (x + 0.25, x):
        value = function("value")(point)  # type: ignore[operator]
        gradient, product = np.full(x.size, np.nan), np.full(x.size, np.nan)
        again = function("value_and_gradient")(point, gradient)  # type: ignore[operator]
        function("hvp")(point, 1.0 - v, product)  # type: ignore[operator]
        function("hvp")(point, v, product)  # type: ignore[operator]
    return {
        "value": np.array([value]),
        "again": np.array([again]),
        "gradient": gradient,
        "hvp": product,
    }


def in_python(question: Question, target: str) -> dict[str, Array]:
    compiled = Compiled("r", question.derivatives, question.data, question.sizes, TARGETS[target])
    return answers(question, Kernels(compiled, question.given))


def in_c(
    questions: Sequence[Question], printer: Printer | None = None
) -> Iterator[dict[str, Array]]:
    """The results of functions that are compiled together, printed by `printer` if given."""
    made = []
    for k, question in enumerate(questions):
        own = question.derivatives
        sizes = Sizes(tuple(question.sizes))
        layout = Layout(own.variables, tuple(question.data), sizes, "float64", {}, {})
        entries: dict[str, Entry] = {}
        for name in ENTRIES:
            entry = own.entry(name)
            entries[name] = replace(entry, name=f"{entry.name}_{k}")  # type: ignore[arg-type]
        units = {
            name: unit(entry, layout, question.sizes, printer) for name, entry in entries.items()
        }
        made.append((question, layout, entries, units))
    every = [one for _, _, _, units in made for one in units.values()]
    text = joined("many", every, made[0][1], made[0][0].sizes)
    for question, layout, entries, units in made:
        functions = {
            name: bound(text, units[name], entries[name], layout, question.sizes)(question.given)
            for name in ENTRIES
        }
        yield _answers(question, functions.__getitem__)


def worst(found: dict[str, Array], wanted: dict[str, tuple[Array, float]]) -> float:
    """The largest difference relative to the terms; inf if only one of two is not finite."""
    largest = 0.0
    for name, array in found.items():
        value, scale = wanted["value" if name == "again" else name]
        with np.errstate(all="ignore"):
            same = (array == value) | (np.isnan(array) & np.isnan(value))
            off = np.where(same, 0.0, np.abs(array - value) / max(scale, 1e-300))
        largest = max(largest, float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0)))
    return largest


Answers = list[dict[str, Array]]
Wanted = list[dict[str, tuple[Array, float]]]


def assert_agreement(found: Answers, wanted: Wanted, first: int = 0) -> None:
    """Assert that all results are within the tolerance; a failure names the worst case."""
    off = [worst(one, right) for one, right in zip(found, wanted, strict=True)]
    assert max(off) <= ALLOWED, first + int(np.argmax(off))
