"""Sums of squares of a product of matrices: bounds on the parts by cyclic products.

Recognised as a chain of factors in any way of writing it. The bounds of `chain_norms` use how the
residual is aligned with the factors, not its norm alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slomodel.bounds.arithmetic.bounded import Bounded, midpoint
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.rules.series.chain_gaps import gaps_of
from slomodel.bounds.rules.series.chain_norms import Monomials, parts
from slomodel.bounds.setting import Setting
from slomodel.bounds.structure.gram_form import as_written
from slomodel.bounds.structure.matrix_chains import matrix_chain

_LEAST, _MOST = 1e-30, 1e30
"""Range of norms of which ten may be multiplied or divided without over- or underflow."""


def chain_parts(setting: Setting, blocks: Sequence[str]) -> Monomials | None:
    """Upper bounds on the parts of f of degree >= 2, by exponents in the blocks' lengths.

    Those of degree 2 are inf where the objective has other quadratic terms. None where it is not
    such a chain.
    """
    setting = as_written(setting)
    chain = matrix_chain(setting)
    if chain is None:
        return None
    data = [chain.X, *([] if chain.Y is None else [chain.Y])]
    found = enclose([chain.weight, *(one for one, _ in data)], boxed(setting.values), setting.sizes)
    weight = float(found[chain.weight].magnitude)
    X, *others = (_matrix(found[one], turned) for one, turned in data)
    W = [_matrix(point(setting.values[one]), turned) for one, turned in chain.factors]
    gaps = gaps_of(W, X, others[0] if others else None)
    if not all(norm == 0.0 or _LEAST <= norm <= _MOST for norm in gaps.norms.values()):
        return None
    names = [blocks.index(one.name) for one, _ in chain.factors]
    result: Monomials = {}
    for layers, value in parts(gaps).items():
        key = [0] * len(blocks)
        for block, power in zip(names, layers, strict=True):
            key[block] = power
        whole = sum(layers) > 2 or chain.is_all
        result[tuple(key)] = float(rounded_up(np.asarray(value * weight))) if whole else np.inf
    return result


def _matrix(a: Interval, turned: bool) -> Bounded[float]:
    row = midpoint(a.each(lambda array: array[np.newaxis]) if len(a.shape) == 1 else a)
    return row.transposed if turned else row
