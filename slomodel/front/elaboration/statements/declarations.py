"""Declarations of dims, data, and variables with their starts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from slomodel.errors import Span
from slomodel.front.data.arrays import file_reference
from slomodel.front.elaboration.errors import (
    StatementError,
    dense_needed,
    error,
    shape_error,
    suggestion,
)
from slomodel.front.elaboration.expressions.expressions import evaluate
from slomodel.front.elaboration.functions.arguments import match, signature
from slomodel.front.elaboration.indices import sparse
from slomodel.front.elaboration.indices.affine_index import size
from slomodel.front.elaboration.scope import Elaboration, Scope, Symbol, described
from slomodel.front.elaboration.statements.variable_sets import check_start, declared_set
from slomodel.front.elaboration.values import show, value_of
from slomodel.front.text.syntax import (
    ArrayLiteral,
    BoolOp,
    Compare,
    DataDecl,
    DimDecl,
    Expr,
    FunctionCall,
    Name,
    NoneLiteral,
    Not,
    NumberLiteral,
    Power,
    ProductChain,
    Size,
    String,
    SumChain,
    VarDecl,
)
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, SizePolynomial, literal, named, show_shape
from slomodel.ir.expr import Const, Input
from slomodel.problem import (
    DataDeclaration,
    DimDeclaration,
    FileReference,
    Init,
    InitKind,
    StoredEntries,
    Variable,
)
from slomodel.rewrite import Rolled

_LARGEST_DIM = 10**12
_DISTRIBUTIONS = {"uniform": "uniform(a, b)", "normal": "normal(mu, s)"}


def declare_dim(statement: DimDecl, model: Elaboration) -> DimDeclaration | None:
    """Declare a size; None for one that is affine in others, as in `dim M = N - L + 1`."""
    name = statement.name
    default = formula = None
    if statement.default is not None:
        formula = _product_of_sizes(statement.default, model)
    if statement.default is not None and formula is None:
        span = statement.default.span
        result = size(statement.default, Scope(model))
        if not result.is_literal:
            model.declare(Symbol(name.text, "dim", name.span, dim=result))
            return None
        default = result.const
        if not 0 <= default <= _LARGEST_DIM:
            message = f"a dim is a size, and `{span.text}` is not"
            raise error("E217", message, span, "write a whole number from 0 to 10^12")
    model.declare(Symbol(name.text, "dim", name.span, dim=named(name.text)))
    return DimDeclaration(name.text, default, name.span, formula)


def _product_of_sizes(written: Expr, model: Elaboration) -> SizePolynomial | None:
    """The value of a dim such as `m*n` or `n*(n - 1)/2`; None if it is affine, or something else.

    An affine one needs no declaration of its own, and `size` reports what is wrong with others.
    """
    total = _size_polynomial(written, model)
    if total is None or all(len(names) < 2 and by.denominator == 1 for names, by in total.terms):
        return None
    return total


def _size_polynomial(written: Expr, model: Elaboration) -> SizePolynomial | None:
    """A sum or product of dims and whole numbers; None for other expressions."""
    if isinstance(written, NumberLiteral):
        value = Fraction(written.value)
        return SizePolynomial((((), value),)) if value.denominator == 1 and value else None
    if isinstance(written, Name):
        symbol = model.symbols.get(written.text)
        return None if symbol is None or symbol.dim is None else SizePolynomial.of(symbol.dim)
    if isinstance(written, Power):
        base, exponent = (_size_polynomial(e, model) for e in (written.base, written.exponent))
        if base is None or exponent is None or exponent.constant not in (2, 3):
            return None
        return base * base * base if exponent.constant == 3 else base * base
    if not isinstance(written, SumChain | ProductChain):
        return None
    total = _size_polynomial(written.first, model)
    for term in written.rest:
        other = _size_polynomial(term.operand, model)
        if other is not None and term.op == "/":
            divisor = other.constant
            other = SizePolynomial((((), 1 / divisor),)) if divisor else None
        if total is None or other is None or term.op == "@":
            return None
        if term.op in ("+", "-"):
            total += other * SizePolynomial((((), Fraction(-1 if term.op == "-" else 1)),))
        else:
            total *= other
    return total


def shape_of(sizes: tuple[Size, ...], model: Elaboration) -> Shape:
    """The dims of a declaration, affine in names."""
    return tuple(_size(one, model) for one in sizes)


def _size(one: Size, model: Elaboration) -> Dim:
    total = literal(one.offset)
    for name, factor in one.terms:
        total += _dim(name, model) * factor
    if total.is_literal and total.const < 0:
        raise error("E217", f"the size `{one.span.text}` is negative", one.span)
    return total


def _dim(written: Name, model: Elaboration) -> Dim:
    name = written.text
    symbol = model.symbols.get(name)
    if symbol is None:
        if name in model.later:
            raise Scope(model).unknown(written)
        dims = [s.name for s in model.symbols.values() if s.kind == "dim" and not s.is_broken]
        remedy = suggestion(name, dims) or f"declare it before: `dim {name}`"
        # One message suffices: other uses of this size are not reported.
        model.symbols[name] = Symbol(name, "dim", written.span)
        raise error("E217", f"unknown dim `{name}`", written.span, remedy)
    if symbol.is_broken:
        raise StatementError(None)
    if symbol.dim is None:
        remedy = f"sizes are declared with `dim {name}` under a name of their own"
        raise error("E217", f"{described(symbol)}, and a size is a dim", written.span, remedy)
    return symbol.dim


def declare_data(statement: DataDecl, model: Elaboration) -> DataDeclaration:
    name = statement.name
    shape = shape_of(statement.shape, model)
    attributes = frozenset(attribute.text for attribute in statement.attributes)
    if "symmetric" in attributes and (len(shape) < 2 or len(set(shape)) > 1):
        message = f"`symmetric` data have one dim on all axes, and `{name.text}` is "
        place = next(a.span for a in statement.attributes if a.text == "symmetric")
        remedy = "write one name for every size, as in `data A[n, n] symmetric`"
        raise shape_error("E217", message + show_shape(shape), place, remedy)
    file = default = None
    if statement.file is not None:
        file = file_reference(statement.file.text, name.text, statement.file.span)
        if statement.drops:
            file = replace(file, complete=complete_columns(statement, file, len(shape)))
        _check_alone(statement.file, name.text, model)
    if statement.default is not None:
        default = constant(statement.default, model)
    if "mask" in attributes:
        model.masks.add(name.text)
    domain = None if statement.domain is None else _size(statement.domain, model)
    _check_index_attributes(statement, domain)
    if "sparse" in attributes:
        _check_sparse(statement, shape)
        result = sparse.declared(name.text, shape, model)
        model.declare(Symbol(name.text, "data", name.span, value=result))
        assert isinstance(result.expr, Input)
        assert result.pattern is not None
        places = tuple(one for one in result.pattern.places if isinstance(one, Input))
        entries = StoredEntries(shape, places)
        return DataDeclaration(
            result.expr, None, file, attributes, False, name.span, entries=entries
        )
    node = build.data(name.text, shape)
    model.declare(Symbol(name.text, "data", name.span, value=value_of(node)))
    if "symmetric" in attributes:
        model.matrices.declare_symmetric(node)
    if domain is not None or "whole" in attributes:
        model.whole[node] = domain
    own = (default, file, attributes, False, name.span)
    return DataDeclaration(node, *own, domain=domain)


def _check_sparse(statement: DataDecl, shape: Shape) -> None:
    """Check the declaration of sparse data."""
    name = statement.name.text
    at = next(one.span for one in statement.attributes if one.text == "sparse")
    if not shape:
        message = f"`sparse` data are arrays, and `{name}` is a number"
        raise error("E217", message, at, f"write `data {name}[m, n] sparse`")
    others = [
        attribute for attribute in statement.attributes if attribute.text not in ("sparse", "mask")
    ]
    if others or statement.domain is not None:
        message = "sparse data are numbers, whose other elements are 0"
        raise error("E217", message, others[0].span if others else at, "leave out `sparse`")
    if statement.default is not None:
        message = f"sparse data `{name}` have no default"
        raise error("E217", message, statement.default.span, "give its stored entries as data")


def _check_index_attributes(statement: DataDecl, domain: Dim | None) -> None:
    """Check the attributes of index data."""
    name = statement.name.text
    places = {attribute.text: attribute.span for attribute in statement.attributes}
    for one in ("one_based", "labels"):
        if one in places and domain is None:
            message = f"`{one}` is of index data, and `{name}` has no dim to index"
            raise error("E217", message, places[one], f"write `data {name}[…] in G {one}`")
    if "labels" not in places:
        return
    assert domain is not None
    if len(domain.terms) != 1 or domain.const or statement.default is not None:
        message = "labels are texts for the positions along a dim"
        remedy = f"write `data {name}[…] in G labels`, without a default"
        raise error("E217", message, places["labels"], remedy)
    if {"one_based", "whole"} & places.keys():
        message = "positions given as labels are neither counted from 1 nor whole numbers"
        raise error("E217", message, places["labels"], "keep one of the two attributes")


def complete_columns(statement: DataDecl, file: FileReference, rank: int) -> tuple[str, ...]:
    """The columns that data with `drop missing` read; none stands for all columns of the table."""
    if not file.path.lower().endswith((".csv", ".tsv")):
        message = f"`{file.path}` is not a table with rows to drop"
        assert statement.file is not None
        raise error("E301", message, statement.file.span, "mask missing values with `masked`")
    if file.key:
        return tuple(one.strip() for one in file.key.split(","))
    return (statement.name.text,) if rank == 1 else ()


def completed(data: Iterable[DataDeclaration]) -> tuple[DataDeclaration, ...]:
    """The data, those of one file with `drop missing` with the columns of all of them."""
    declared = tuple(data)
    columns: dict[str, tuple[str, ...]] = {}
    for one in declared:
        if one.file is not None and one.file.complete is not None:
            known = columns.get(one.file.path, one.file.complete)
            every = (*known, *one.file.complete) if known and one.file.complete else ()
            columns[one.file.path] = tuple(dict.fromkeys(every))
    return tuple(
        one
        if one.file is None or one.file.complete is None
        else replace(one, file=replace(one.file, complete=columns[one.file.path]))
        for one in declared
    )


def _check_alone(file: String, name: str, model: Elaboration) -> None:
    """Check that a key, or a file with one array, is used for one name only."""
    first = model.files.setdefault(file.span, name)
    if first != name and (":" in file.text or file.text.endswith((".npy", ".mtx"))):
        message = f"`{file.text}` is one array, and both `{first}` and `{name}` would be it"
        remedy = 'write `from` after each name, or `from "file.npz"`, which reads each by its name'
        raise error("E301", message, file.span, remedy)


def declare_variable(statement: VarDecl, model: Elaboration) -> Variable:
    name = statement.name
    shape = shape_of(statement.shape, model)
    node = build.variable(name.text, shape)
    inside = declared_set(statement, shape, model)
    model.declare(Symbol(name.text, "variable", name.span, value=value_of(node)))
    model.matrices.declare(node, None if inside is None else inside.kind)
    init = Init() if inside is None else Init("inside", ())
    if statement.init is not None:
        init = _init(statement.init, shape, model)
        if inside is not None:
            check_start(init, inside, statement)
    return Variable(node, init, name.span, inside)


def constant(node: Expr, model: Elaboration) -> float:
    """The value of a constant expression."""
    value = evaluate(node, Scope(model))
    if value.rank:
        message = f"a number is expected here, not an array of shape {show(value)}"
        remedy = "`= value` is the default of every element; arrays are given with data=, or "
        remedy += "written as a definition: `let a = [1, 2]`"
        raise error("E216", message, node.span, remedy)
    if not isinstance(value.expr, Const):
        message = f"a number is expected here, and `{node.span.text}` depends on names"
        raise error("E216", message, node.span, "write a number, like `0.1` or `1/3`")
    number = float(value.expr.value)
    if not math.isfinite(number):
        raise error("E216", f"`{node.span.text}` is {number}", node.span, "write a finite number")
    return number


def _init(node: Expr, shape: Shape, model: Elaboration) -> Init:
    if isinstance(node, FunctionCall) and node.function.text in _DISTRIBUTIONS:
        return _distribution(node, model)
    if isinstance(node, FunctionCall) and node.function.text in _ARRAYS:
        return _made(node, shape, model)
    if isinstance(node, ArrayLiteral):
        return _listed(node, shape, model)
    if isinstance(node, Name) and node.text not in model.symbols:
        if node.text == "zeros":
            return Init("zeros", ())
        if node.text == "ones":
            return Init("ones", ())
        if node.text == "eye":
            if len(shape) != 2:
                message = f"`eye` starts a matrix, not {show_shape(shape)}"
                raise shape_error("E218", message, node.span, "use a number, `zeros` or `ones`")
            return Init("eye", ())
        if node.text in _DISTRIBUTIONS:
            example = {"normal": "normal(0, 1)", "uniform": "uniform(0, 1)"}[node.text]
            message = f"`{node.text}` needs its two numbers"
            raise error("E218", message, node.span, f"write `{example}`")
        known = ["zeros", "ones", "eye", *_DISTRIBUTIONS]
        known += [s.name for s in model.symbols.values() if s.kind == "data"]
        message = f"unknown start `{node.text}`"
        raise error("E218", message, node.span, suggestion(node.text, known) or _STARTS)
    if isinstance(node, Name):
        symbol = model.symbols[node.text]
        if symbol.is_broken:
            raise StatementError(None)
        if symbol.kind == "data":
            return _from_data(symbol, node.span, shape)
    if isinstance(node, FunctionCall) and node.function.text not in model.symbols:
        known = get_close_matches(node.function.text, _DISTRIBUTIONS, n=1)
        if known:
            message = f"unknown distribution `{node.function.text}`"
            raise error("E218", message, node.function.span, f"did you mean `{known[0]}`?")
    try:
        return Init("number", (constant(node, model),))
    except StatementError as problem:
        if problem.diagnostic is None or problem.diagnostic.code != "E216":
            raise
        message = f"`{node.span.text}` is not a start for a variable"
        raise error("E218", message, node.span, _STARTS) from None


_ARRAYS: Mapping[str, InitKind] = {"zeros": "zeros", "ones": "ones", "eye": "eye"}


def _made(node: FunctionCall, shape: Shape, model: Elaboration) -> Init:
    """A start written with its sizes, as in `eye(n)`."""
    own = evaluate(node, Scope(model)).dims
    if own != shape:
        message = f"the start is {show_shape(own)}, the variable {show_shape(shape)}"
        raise shape_error("E218", message, node.span, "the shapes must be equal")
    return Init(_ARRAYS[node.function.text], ())


_STARTS = (
    "a start is a number, an array of numbers like `[1, 0]`, `uniform(a, b)`, `normal(mu, s)`, "
    "`zeros`, `ones`, `eye` or data"
)


_Elements: TypeAlias = "float | list[_Elements]"


def _listed(node: ArrayLiteral, shape: Shape, model: Elaboration) -> Init:
    """A start that is written as an array."""
    array = np.array(_elements(node, model))
    known = tuple(literal(length) for length in array.shape)
    fits = len(known) == len(shape) and all(
        own == dim or not dim.is_literal for own, dim in zip(known, shape, strict=True)
    )
    if not fits:
        message = f"the start is {show_shape(known)}, the variable {show_shape(shape)}"
        raise shape_error("E218", message, node.span, "the shapes must be equal")
    return Init("list", tuple(array.ravel().tolist()), lengths=array.shape)


def _elements(node: ArrayLiteral, model: Elaboration) -> list[_Elements]:
    """The numbers of an array, as nested lists of equal lengths."""
    result: list[_Elements] = []
    for item in node.items:
        own = _elements(item, model) if isinstance(item, ArrayLiteral) else constant(item, model)
        if result and np.shape(own) != np.shape(result[0]):
            message = f"the elements of `{node.span.text}` need one shape"
            raise error("E218", message, item.span, "give rows of one length")
        result.append(own)
    return result


def _from_data(symbol: Symbol, span: Span, shape: Shape) -> Init:
    assert symbol.value is not None
    if symbol.value.pattern is not None:
        raise dense_needed(span, "give the start as an array")
    result = symbol.value.dims
    if result != shape:
        message = f"the start `{symbol.name}` is {show_shape(result)}, the variable "
        raise shape_error("E218", message + show_shape(shape), span, "the shapes must be equal")
    return Init("data", (), symbol.name)


def _distribution(node: FunctionCall, model: Elaboration) -> Init:
    name = node.function.text
    result = match(node, signature(_DISTRIBUTIONS[name]))
    numbers = []
    for (argument,) in result.values():
        if isinstance(argument, (String, NoneLiteral, Compare, BoolOp, Not)):
            raise error("E218", "a number is expected here", argument.span, _STARTS)
        numbers.append(constant(argument, model))
    first, second = numbers
    if name == "normal":
        if second < 0:
            message = "the standard deviation of `normal(mu, s)` is negative"
            raise error("E218", message, node.span, "write `s` from 0 on")
        return Init("normal", (first, second))
    if first > second:
        message = "`uniform(a, b)` needs a <= b"
        raise error("E218", message, node.span, f"write `uniform({second:g}, {first:g})`")
    return Init("uniform", (first, second))


def table_declarations(rolled: Rolled) -> tuple[DataDeclaration, ...]:
    """Data declarations of the tables of constants that rolling a long sum introduced."""
    return tuple(DataDeclaration(node, values=values) for node, values in rolled.tables.items())
