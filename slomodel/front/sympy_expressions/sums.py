"""Sums and products over indices, and the elements in them."""

from __future__ import annotations

from slomodel.errors import SourceText
from slomodel.front.elaboration.contraction import total
from slomodel.front.elaboration.reductions import reduced
from slomodel.front.elaboration.scope import Model
from slomodel.front.sympy_expressions.elements import element
from slomodel.front.sympy_expressions.faults import place
from slomodel.front.sympy_expressions.scan import name_of
from slomodel.front.sympy_expressions.scope import enter
from slomodel.front.sympy_expressions.steps import Ask, Steps


def sum_over(ask: Ask) -> Steps:
    """A Sum as one contraction; a term without the index counts as often as it has values."""
    labels, inner = enter(ask.node, ask.scope)
    body = yield Ask(ask.node.function, inner)
    return total(body, labels, ())


def product_over(ask: Ask) -> Steps:
    """A Product; a factor 0 has the right derivative."""
    labels, inner = enter(ask.node, ask.scope)
    body = yield Ask(ask.node.function, inner)
    return reduced("prod", body, Model(SourceText("")), place(ask.node), labels=labels)


def indexed(ask: Ask) -> Steps:
    """An element of an IndexedBase."""
    yield from ()
    base = ask.scope.reading.values[name_of(ask.node.base)]
    return element(base, ask.node.indices, ask.node, ask.scope)


def matrix_element(ask: Ask) -> Steps:
    """An element of a matrix expression."""
    base = yield Ask(ask.node.parent, ask.scope)
    return element(base, (ask.node.i, ask.node.j), ask.node, ask.scope)
