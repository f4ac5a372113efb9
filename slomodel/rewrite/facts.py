"""Facts that passes may use besides the graph: sizes, and answers to queries about the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import NOTHING, Known
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import inputs
from slomodel.reference import evaluate

Question = Literal["finite", "nonnegative", "nonzero"]


class Facts:
    """Sizes and data of one bind; `queries` records the queries about the data and their results.

    `known` holds the facts that are declared. A rewriting depends on a bind only by its sizes and
    these answers: it is valid for every bind with the same ones.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        values: Mapping[Input, NDArray[np.float64]],
        known: Known = NOTHING,
    ) -> None:
        self.sizes = dict(sizes)
        self.known = known
        self.queries: dict[tuple[Question, Expr], bool] = {}
        self._values = values

    def finite(self, node: Expr) -> bool:
        """True if all elements of a node of data are finite.

        For data not given yet, this is known only if their declaration says so.
        """
        if isinstance(node, Input) and node in self.known.finite:
            return True
        return self.answer("finite", node)

    def nonnegative(self, node: Expr) -> bool:
        """True if every element of a node of data is finite and at least 0."""
        return self.answer("nonnegative", node)

    def nonzero(self, node: Expr) -> bool:
        """True if every element of a node of data is finite and not 0."""
        return self.answer("nonzero", node)

    def answer(self, question: Question, node: Expr) -> bool:
        key = (question, node)
        if key not in self.queries:
            self.queries[key] = self._found(question, node)
        return self.queries[key]

    def forget(self) -> None:
        """Release the data but not the answers; new queries are no longer possible."""
        self._values = {}

    def agrees(self, other: Facts) -> bool:
        """True if the sizes, and the answers to all queries to `other`, are the same here."""
        return self.sizes == other.sizes and all(
            self.answer(*key) == answer for key, answer in other.queries.items()
        )

    def _found(self, question: Question, node: Expr) -> bool:
        if any(one not in self._values for one in inputs(node)):
            return False
        with np.errstate(all="ignore"):
            (array,) = evaluate([node], dict(self._values), self.sizes)
        if not bool(np.isfinite(array).all()):
            return False
        if question == "nonzero":
            return bool(np.all(array))
        return question == "finite" or not bool(np.less(array, 0.0).any())
