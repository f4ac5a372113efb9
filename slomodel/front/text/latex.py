"""A model as LaTeX, in index notation, from its syntax tree; nothing here recurses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from slomodel.front.text.latex_calls import called, reduced
from slomodel.front.text.latex_words import ATOM, SUM, TeX, bracketed, name_of, number_of
from slomodel.front.text.syntax import (
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Expr,
    Fn,
    Index,
    Let,
    Name,
    Negate,
    Node,
    NoneLiteral,
    Not,
    Number,
    Power,
    Product,
    Program,
    Slice,
    String,
    Sum,
    Transpose,
    VarDecl,
)
from slomodel.front.text.traverse import children

_PRODUCT, _FRACTION, _POWER = 2, 3, 4
_BETWEEN = {"*": r" \, ", "@": r" \, ", ".*": r" \odot ", "./": r" \oslash "}
_COMPARED = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_JOINED = {"and": r" \wedge ", "or": r" \vee "}


def latex_of(program: Program) -> str:
    """Objective, definitions and functions of a model, as one `aligned` environment."""
    objective = program.objectives[0]
    word = r"\max" if objective.sense == "maximize" else r"\min"
    variables = r",\; ".join(_declared(one) for one in program.vars)
    lines = [rf"{word}_{{{variables}}} \quad & {_text(objective.expr)}"]
    lines += [_definition(s) for s in program.order if isinstance(s, (Let, Fn))]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _declared(variable: VarDecl) -> str:
    sizes = []
    for size in variable.shape:
        name = "" if size.name is None else name_of(size.name.text)
        shift = f" {'+' if size.offset > 0 else '-'} {abs(size.offset)}" if size.offset else ""
        sizes.append(f"{name}{shift}" if name else f"{size.offset}")
    power = r" \times ".join(sizes)
    space = rf"\mathbb{{R}}^{{{power}}}" if sizes else r"\mathbb{R}"
    return rf"{name_of(variable.name.text)} \in {space}"


def _definition(statement: Let | Fn) -> str:
    head = name_of(statement.name.text)
    if isinstance(statement, Fn):
        parameters = ", ".join(name_of(one.text) for one in statement.parameters)
        return rf"& {head}({parameters}) = {_text(statement.body)}"
    if statement.indices:
        indices = ", ".join(name_of(one.name.text) for one in statement.indices)
        head = f"{_unindexed(head)}_{{{indices}}}"
    return rf"& {head} = {_text(statement.expr)}"


def _unindexed(text: str) -> str:
    """A text that an index may follow: TeX takes no second one, so a first goes into a group."""
    return f"{{{text}}}" if "_" in text else text


def _text(root: Expr) -> str:
    results: list[TeX] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_left = stack.pop()
        below = children(node)
        if below and not is_left:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(below))
            continue
        operands = results[len(results) - len(below) :]
        del results[len(results) - len(below) :]
        results.append(_rule(node, operands))
    return results[0].text


def _rule(node: Node, operands: Sequence[TeX]) -> TeX:
    """The text of a node from those of its children."""
    match node:
        case Number() | Name() | String() | NoneLiteral():
            return _leaf(node)
        case Negate():
            return TeX(f"-{bracketed(operands[0], _PRODUCT)}", SUM)
        case Sum():
            return _sum(node, operands)
        case Product():
            return _product(node, operands)
        case Power():
            circle = r"\circ " if node.op == ".^" else ""
            base = bracketed(operands[0], ATOM)
            return TeX(f"{base}^{{{circle}{operands[1].text}}}", _POWER)
        case Transpose():
            return TeX(rf"{bracketed(operands[0], ATOM)}^\top", _POWER)
        case Slice():
            return _slice(node, operands)
        case Index():
            inside = ", ".join(one.text for one in operands[1:])
            return TeX(f"{_unindexed(bracketed(operands[0], ATOM))}_{{{inside}}}", ATOM)
        case Call():
            return called(node, operands)
        case Comprehension():
            return reduced(node, operands)
        case Compare() | BoolOp() | Not():
            return _condition(node, operands)
        case _:
            assert_never(node)


def _leaf(node: Number | Name | String | NoneLiteral) -> TeX:
    match node:
        case Number():
            return number_of(node.text)
        case Name():
            return TeX(name_of(node.text), ATOM)
        case String():
            return TeX(rf"\text{{{node.text}}}", ATOM)
        case NoneLiteral():
            return TeX(r"\cdot", ATOM)


def _condition(node: Compare | BoolOp | Not, operands: Sequence[TeX]) -> TeX:
    match node:
        case Compare():
            left, right = operands
            return TeX(f"{left.text} {_COMPARED[node.op]} {right.text}", SUM)
        case BoolOp():
            return TeX(_JOINED[node.op].join(f"({one.text})" for one in operands), SUM)
        case Not():
            return TeX(rf"\neg ({operands[0].text})", SUM)


def _sum(node: Sum, operands: Sequence[TeX]) -> TeX:
    parts = [operands[0].text]
    for term, operand in zip(node.rest, operands[1:], strict=True):
        parts.append(f"{term.op} {bracketed(operand, _PRODUCT)}")
    return TeX(" ".join(parts), SUM)


def _product(node: Product, operands: Sequence[TeX]) -> TeX:
    """Factors beside each other; what `/` divides becomes a fraction."""
    factors = [bracketed(operands[0], _PRODUCT)]
    single = operands[0]
    for term, operand in zip(node.rest, operands[1:], strict=True):
        if term.op == "/":
            above = single.text if len(factors) == 1 else "".join(factors)
            single = TeX(rf"\frac{{{above}}}{{{operand.text}}}", _FRACTION)
            factors = [single.text]
            continue
        right = bracketed(operand, _FRACTION)
        factors += [r" \cdot " if right[0].isdigit() else _BETWEEN[term.op], right]
    return single if len(factors) == 1 else TeX("".join(factors), _PRODUCT)


def _slice(node: Slice, operands: Sequence[TeX]) -> TeX:
    rest = list(operands)
    low = rest.pop(0).text if node.lo is not None else ""
    high = rest.pop(0).text if node.hi is not None else ""
    return TeX(f"{low}:{high}", ATOM)
