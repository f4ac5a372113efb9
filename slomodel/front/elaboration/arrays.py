"""The table of array functions: for each its signature, its array parameters, and its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.front.elaboration.comprehension import size_product
from slomodel.front.elaboration.contraction import contract, total
from slomodel.front.elaboration.einsums import einsum
from slomodel.front.elaboration.faults import Fault, fault
from slomodel.front.elaboration.identities import square_root
from slomodel.front.elaboration.layout import concat, reshaped
from slomodel.front.elaboration.mismatch import marks, unequal
from slomodel.front.elaboration.reductions import reduced, require_nonempty, softened
from slomodel.front.elaboration.site import Site
from slomodel.front.elaboration.values import Value, combine, is_square, merged, number, value_of
from slomodel.functions import abs, div, ne, square, where
from slomodel.ir import build
from slomodel.ir.expr import Map
from slomodel.ir.walk import inputs

Rule = Callable[[Site], Value]


@dataclass(frozen=True, slots=True)
class ArrayFunction:
    """`text` is the signature; `values` names the parameters that are arrays."""

    text: str
    values: tuple[str, ...]
    rule: Rule


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}
"""The array functions of the language by name."""


def _entry(text: str, *values: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        ARRAY_FUNCTIONS[text.partition("(")[0]] = ArrayFunction(text, values, rule)
        return rule

    return add


def _need_array(site: Site) -> None:
    remedy = f"a sum by index is written `{site.name}(… for i in n)`"
    site.need_rank(tuple(range(1, 64)), f"`{site.name}` takes an array", remedy)


@_entry("sum(x, axis=None)", "x")
def _sum(site: Site) -> Value:
    _need_array(site)
    return total(site.x, axes=site.axes())


@_entry("mean(x, axis=None)", "x")
def _mean(site: Site) -> Value:
    _need_array(site)
    axes = site.axes()
    dims = [site.x.dims[axis] for axis in axes]
    require_nonempty("mean", site.scope.model, dims, site.span)
    return combine(div, total(site.x, axes=axes), size_product(dims))


@_entry("prod(x, axis=None)", "x")
@_entry("max(x, axis=None)", "x")
@_entry("min(x, axis=None)", "x")
@_entry("logsumexp(x, axis=None)", "x")
def _reduced(site: Site) -> Value:
    _need_array(site)
    return reduced(site.name, site.x, site.scope.model, site.span, axes=site.axes())


@_entry("softmax(x, axis=-1)", "x")
def _softmax(site: Site) -> Value:
    _need_array(site)
    return softened(site.x, site.one_axis(), site.scope.model, site.span)


@_entry("sumsq(x)", "x")
def _sumsq(site: Site) -> Value:
    return total(combine(square, site.x)) if site.x.rank else combine(square, site.x)


def _root_of_squares(site: Site) -> Value:
    return square_root(_sumsq(site))


@_entry("norm2(x)", "x")
def _norm2(site: Site) -> Value:
    remedy = "write `fro(A)` for the root of the sum of squares of a matrix, `abs` of a number"
    site.need_rank((1,), "`norm2` takes a vector", remedy)
    return _root_of_squares(site)


@_entry("fro(x)", "x")
def _fro(site: Site) -> Value:
    return _root_of_squares(site)


@_entry("norm1(x)", "x")
def _norm1(site: Site) -> Value:
    magnitudes = combine(abs, site.x)
    site.scope.model.note(magnitudes, site.span)
    return total(magnitudes)


@_entry("dot(x, y)", "x", "y")
def _dot(site: Site) -> Value:
    site.need_rank((1,), "`dot` takes two vectors", "write `sum(A .* B)` or `A @ B` for matrices")
    x, y = site.values
    if x.axes != y.axes:
        raise unequal(site.scope, "`dot`", site.span, site.operands)
    return contract([(x, "i"), (y, "i")], "")


@_entry("outer(x, y)", "x", "y")
def _outer(site: Site) -> Value:
    remedy = 'write `einsum("ij,kl->ijkl", A, B)` for matrices'
    site.need_rank((1,), "`outer` takes two vectors", remedy)
    x, y = site.values
    return contract([(x, "i"), (y, "j")], "ij")


_SQUARE = "of a square matrix the two dims have one name"


@_entry("trace(A)", "A")
def _trace(site: Site) -> Value:
    if not is_square(site.x):
        raise site.refuse("`trace` takes a square matrix", _SQUARE)
    return contract([(site.x, "ii")], "")


@_entry("diag(x)", "x")
def _diag(site: Site) -> Value:
    if site.x.rank == 1:
        return contract([(site.x, "i")], "ii")
    if not is_square(site.x):
        raise site.refuse("`diag` takes a vector or a square matrix", _SQUARE)
    return contract([(site.x, "ii")], "i")


@_entry("eye(n)")
def _eye(site: Site) -> Value:
    return value_of(build.identity(site.sizes("n")[0]))


@_entry("zeros(*sizes)")
def _zeros(site: Site) -> Value:
    return value_of(build.zeros(site.sizes("sizes")))


@_entry("ones(*sizes)")
def _ones(site: Site) -> Value:
    return value_of(build.ones(site.sizes("sizes")))


@_entry("masked(E, mask)", "E", "mask")
def _masked(site: Site) -> Value:
    """`where(mask != 0, E, 0)`; E may hold NaN where the mask is 0."""
    value, mask = (one.value for one in site.operands)
    if _is_swapped(site):
        raise _swapped(site)
    if mask.rank != value.rank or merged((value, mask)) is None:
        raise _other_mask(site)
    result = combine(where, combine(ne, mask, number(0.0)), value, number(0.0))
    # A mask of numbers leaves no choice in the graph.
    if isinstance(result.expr, Map) and result.expr.function is where:
        site.scope.model.masked.add(result.expr)
    return result


def _is_swapped(site: Site) -> bool:
    """True where the first argument is declared a mask, and the second depends on variables."""
    first, second = site.operands
    is_mask = first.name in site.scope.model.masks
    return is_mask and any(one.role == "variable" for one in inputs(second.value.expr))


def _swapped(site: Site) -> Fault:
    first, second = site.operands
    message = f"the mask is the second argument of `masked`, and `{first.name}` is the mask"
    remedy = f"write `masked({second.text}, {first.text})`"
    return fault("E208", message, site.span, remedy, marks=marks(first, second))


def _other_mask(site: Site) -> Fault:
    value, mask = site.operands
    if value.value.rank and mask.value.rank:
        return unequal(site.scope, "`masked`", site.span, (value, mask))
    return site.refuse(
        "`masked` takes two arrays of one shape", "the mask is data: `data M[n] mask`"
    )


@_entry("reshape(x, *sizes)", "x")
def _reshape(site: Site) -> Value:
    return reshaped(site)


@_entry("concat(a, b, axis=0)", "a", "b")
def _concat(site: Site) -> Value:
    return concat(site)


@_entry("einsum(spec, *arrays)", "arrays")
def _einsum(site: Site) -> Value:
    return einsum(site)
