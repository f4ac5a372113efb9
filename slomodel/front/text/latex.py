"""The text of a model as LaTeX: names, numbers, expressions, objective and definitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from slomodel.front.text.syntax import (
    ArrayLiteral,
    BoolOp,
    Compare,
    Comprehension,
    ConstraintStatement,
    Fn,
    FunctionCall,
    Index,
    Iteration,
    Let,
    ModelTree,
    Name,
    Negate,
    Node,
    NoneLiteral,
    Not,
    NumberLiteral,
    Power,
    ProductChain,
    SetClause,
    Size,
    Slice,
    String,
    SumChain,
    Transpose,
    VarDecl,
)
from slomodel.front.text.traversal import children
from slomodel.functions import FUNCTIONS

SUM, ATOM = 1, 5
"""Binding strengths: a sum needs brackets in a product, an atom never does."""

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
        *("lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi"),
        *("omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi"),
        *("Psi", "Omega"),
    )
)
_SHORT = {"lam": "lambda", "eps": "epsilon", "lambda_": "lambda"}
_PARTS = re.compile(r"(.*?[^\W\d_])_?(\d+)")


@dataclass(frozen=True, slots=True)
class TeX:
    """A fragment of LaTeX with its binding strength; `entries`: those of a written-out vector."""

    text: str
    strength: int
    entries: tuple[str, ...] = ()


def bracketed(piece: TeX, least: int) -> str:
    """The text, in brackets if it binds less strongly than `least`."""
    return piece.text if piece.strength >= least else rf"\left({piece.text}\right)"


def name_of(name: str) -> str:
    """A name in LaTeX: Greek letters by name, trailing digits as a subscript."""
    result = _PARTS.fullmatch(name)
    if result and name not in _SHORT:
        return f"{_word(result[1])}_{{{result[2]}}}"
    head, _, rest = name.partition("_")
    if head and rest and name not in _SHORT:
        return rf"{_word(head)}_{{\mathrm{{{_escaped(rest)}}}}}"
    return _word(name)


def _word(word: str) -> str:
    known = _SHORT.get(word, word)
    if known in _GREEK:
        return rf"\{known}"
    return word if len(word) == 1 and word != "_" else rf"\mathrm{{{_escaped(word)}}}"


def _escaped(word: str) -> str:
    return word.replace("_", r"\_")


def number_of(text: str) -> TeX:
    """A number as written, with its exponent as a power of ten."""
    mantissa, _, exponent = text.lower().partition("e")
    if not exponent:
        return TeX(text, ATOM)
    power = rf"10^{{{int(exponent)}}}"
    return TeX(power if mantissa in ("1", "1.") else rf"{mantissa} \cdot {power}", 2)


_PRODUCT, _POWER = 2, 4
_AROUND = {
    "norm1": (r"\left\lVert ", r"\right\rVert_1"),
    "norm2": (r"\left\lVert ", r"\right\rVert_2"),
    "fro": (r"\left\lVert ", r"\right\rVert_F"),
    "sumsq": (r"\left\lVert ", r"\right\rVert^2"),
}
_MATRICES = {
    "inv": (r"{0}^{{-1}}", _POWER),
    "solve": (r"{0}^{{-1}} \, {1}", _PRODUCT),
    "logdet": (r"\log \det {0}", _PRODUCT),
    "quad": (r"{1}^\top \, {0} \, {1}", _PRODUCT),
    "kron": (r"{0} \otimes {1}", _PRODUCT),
}
"""The notation of functions of matrices, and how strongly it binds."""
_COMMANDS = {"det": r"\det"}
_BIG = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}


def called(node: FunctionCall, operands: Sequence[TeX]) -> TeX:
    """A function call in the printed notation of the function."""
    name, texts = node.function.text, [operand.text for operand in operands]
    latex = FUNCTIONS[name].latex if name in FUNCTIONS else _COMMANDS.get(name, "")
    if node.kwargs:
        names = [*[""] * len(node.args), *(f"{name_of(k.name.text)} = " for k in node.kwargs)]
        texts = [start + text for start, text in zip(names, texts, strict=True)]
    elif name in _AROUND and len(texts) == 1:
        left, right = _AROUND[name]
        return TeX(left + texts[0] + right, _POWER if name == "sumsq" else ATOM)
    elif name == "where" and len(texts) == 3:
        cases = rf"{texts[1]} & {texts[0]} \\ {texts[2]} & \text{{otherwise}}"
        return TeX(rf"\begin{{cases}} {cases} \end{{cases}}", SUM)
    elif "{" in latex and len(texts) == FUNCTIONS[name].arity:
        return TeX(latex.format(*texts), ATOM)
    elif name == "square" and len(texts) == 1:
        return TeX(f"{bracketed(operands[0], ATOM)}^2", _POWER)
    elif name in _MATRICES and len(texts) == 1 + (name in ("solve", "quad", "kron")):
        form, strength = _MATRICES[name]
        return TeX(form.format(*(bracketed(one, ATOM) for one in operands)), strength)
    elif name in ("dot", "outer") and len(texts) == 2:
        first, second = (bracketed(one, ATOM) for one in operands)
        pair = (rf"{first}^\top", second) if name == "dot" else (first, rf"{second}^\top")
        return TeX(r" \, ".join(pair), _PRODUCT)
    own = name_of(name)
    head = own if not own.startswith(r"\mathrm") else rf"\operatorname{{{_plain(name)}}}"
    if latex.startswith("\\") and "{" not in latex:
        head = latex
    return TeX(rf"{head}\left({', '.join(texts)}\right)", ATOM)


def _plain(name: str) -> str:
    return {"trace": "tr"}.get(name, name.replace("_", r"\_"))


def reduced(node: Comprehension, operands: Sequence[TeX]) -> TeX:
    """`sum(… for i in n)` with a limit below and above for each index."""
    body, *rest = operands
    name = node.function.text
    big = _BIG.get(name, rf"\operatorname*{{{_plain(name)}}}")
    condition = rf",\; {rest.pop().text}" if node.condition is not None else ""
    parts = []
    for k, iteration in enumerate(node.iterations):
        tail = condition if k == len(node.iterations) - 1 else ""
        if iteration.others:
            parts.append(f"{big}_{{{_entries(iteration, rest[k])}{tail}}}")
            continue
        low, high = _limits(iteration, rest[k])
        parts.append(f"{big}_{{{name_of(iteration.name.text)} = {low}{tail}}}^{{{high}}}")
    return TeX(f"{' '.join(parts)} {bracketed(body, _PRODUCT)}", SUM)


def _entries(iteration: Iteration, domain: TeX) -> str:
    """The indices of the stored entries of sparse data."""
    names = ", ".join(name_of(name.text) for name in iteration.names)
    return rf"({names}) \in {domain.text}"


def _limits(iteration: Iteration, domain: TeX) -> tuple[str, str]:
    """The first and the last value of an index."""
    result = iteration.domain
    if isinstance(result, FunctionCall) and result.function.text == "range":
        inside = domain.text.removeprefix(r"\operatorname{range}\left(").removesuffix(r"\right)")
        low, _, stop = inside.rpartition(", ")
        return low or "0", _before(stop, result.args[-1] if result.args else result)
    return "0", _before(domain.text, result)


def _before(stop: str, node: object) -> str:
    """The last value of a range: one less than its stop."""
    if isinstance(node, NumberLiteral) and node.value.is_integer():
        return f"{int(node.value) - 1}"
    last = node.rest[-1] if isinstance(node, SumChain) else None
    if last is None or not isinstance(last.operand, NumberLiteral):
        return f"{stop} - 1"
    value = int(last.operand.value) * (1 if last.op == "+" else -1) - 1
    shift = f" {'+' if value > 0 else '-'} {abs(value)}" if value else ""
    return stop[: stop.rindex(f" {last.op} ")] + shift


_PRODUCT, _FRACTION, _POWER = 2, 3, 4
_BETWEEN = {"*": r" \, ", "@": r" \, ", "%": r" \bmod ", ".*": r" \odot ", "./": r" \oslash "}
_COMPARED = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_JOINED = {"and": r" \wedge ", "or": r" \vee "}


def latex_of(program: ModelTree) -> str:
    """Objective, constraints, definitions and functions, as one `aligned` environment."""
    objective = program.objectives[0]
    word = r"\max" if objective.sense == "maximize" else r"\min"
    variables = r",\; ".join(_declared(var) for var in program.vars)
    lines = [rf"{word}_{{{variables}}} \quad & {_text(objective.expr)}"]
    for number, one in enumerate(program.constraints):
        head = r"\text{subject to} \quad & " if not number else "& "
        lines.append(head + _constraint(one))
    for statement in program.order:
        if isinstance(statement, Fn):
            lines += _function(statement)
        elif isinstance(statement, Let):
            lines.append(f"& {_definition(statement)}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _power(shape: Sequence[Size]) -> str:
    """The exponent of the space of the arrays of a shape, such as `m \\times n`."""
    sizes = [_size(one) for one in shape]
    if len(sizes) > 1:
        sizes = [f"({size})" if " + " in size or " - " in size else size for size in sizes]
    return r" \times ".join(sizes)


def _size(size: Size) -> str:
    """A size, such as `H - k + 1`."""
    terms = [
        (factor, f"{'' if abs(factor) == 1 else abs(factor)} {name_of(name.text)}".strip())
        for name, factor in size.terms
    ]
    if size.offset or not terms:
        terms.append((size.offset, f"{abs(size.offset)}"))
    text = "".join(f" {'-' if sign < 0 else '+'} {term}" for sign, term in terms)
    return text.removeprefix(" + ").removeprefix(" ")


def _declared(variable: VarDecl) -> str:
    power = _power(variable.shape)
    space, named = _space(variable.set)
    if power:
        space = rf"{space}^{{{power}}}"
    return rf"{name_of(variable.name.text)} \in {space}{named}"


def _space(clause: SetClause | None) -> tuple[str, str]:
    """The set of each element, and the name of a set of arrays in which they are."""
    if clause is None:
        return r"\mathbb{R}", ""
    if clause.call is not None:
        call = clause.call
        named = _text(call) if call.args or call.kwargs else _text(call.function)
        return r"\mathbb{R}", rf" \cap {named}"
    ends = [_text(end).replace(r"\mathrm{inf}", r"\infty") for end in clause.ends]
    if clause.form == "half_line":
        left, right = "()" if clause.op in "<>" else "[]"
        if clause.op in (">", ">="):
            return rf"{left}{ends[0]}, \infty)", ""
        return rf"(-\infty, {ends[0]}{right}", ""
    left, right = "()" if clause.form == "open" else "[]"
    return f"{left}{ends[0]}, {ends[1]}{right}", ""


def _function(statement: Fn) -> list[str]:
    """The lines of a function: its value, then the definitions in it."""
    parameters = ", ".join(name_of(one.name.text) for one in statement.parameters)
    head = f"{name_of(statement.name.text)}({parameters})"
    text = rf"& {head} = {_text(statement.body)}"
    spaces = [
        rf"{name_of(parameter.name.text)} \in \mathbb{{R}}^{{{_power(parameter.shape)}}}"
        for parameter in statement.parameters
        if parameter.shape
    ]
    listed = r",\; ".join(spaces)
    text += rf" \quad ({listed})" if spaces else ""
    return [text, *(rf"& \quad {_definition(let)}" for let in statement.locals)]


def _constraint(statement: ConstraintStatement) -> str:
    text = _text(statement.sides[0])
    for op, side in zip(statement.ops, statement.sides[1:], strict=True):
        text += f" {_COMPARED[op]} {_text(side)}"
    parts = []
    for iteration in statement.iterations:
        low, high = _limits(iteration, TeX(_text(iteration.domain), ATOM))
        parts.append(rf"{name_of(iteration.name.text)} = {low}, \ldots, {high}")
    if statement.condition is not None:
        parts.append(_text(statement.condition))
    listed = r",\; ".join(parts)
    return text + (rf" \quad ({listed})" if parts else "")


def _definition(statement: Let) -> str:
    head = name_of(statement.name.text)
    if statement.indices:
        names = [name for index in statement.indices for name in index.names]
        indices = ", ".join(name_of(name.text) for name in names)
        head = f"{_unindexed(head)}_{{{indices}}}"
    return f"{head} = {_text(statement.expr)}{_first(statement)}"


def _first(statement: Let) -> str:
    """The first values of a recurrence, after its rule."""
    first = statement.first
    if first is None or not statement.indices:
        return ""
    name = _unindexed(name_of(statement.name.text))
    later = [name_of(index.name.text) for index in statement.indices[1:]]
    if first.iteration is None:
        places = [str(k) for k in range(len(first.values))]
    else:
        places = [name_of(first.iteration.name.text)]
    values = [
        f"{name}_{{{', '.join([place, *later])}}} = {_text(value)}"
        for place, value in zip(places, first.values, strict=True)
    ]
    if first.iteration is not None:
        low, high = _limits(first.iteration, TeX(_text(first.iteration.domain), ATOM))
        values[0] += rf"\; ({places[0]} = {low}, \ldots, {high})"
    return rf",\quad {', '.join(values)}"


def _unindexed(text: str) -> str:
    """A text to which a subscript can be attached, grouped if it has one: TeX allows only one."""
    return f"{{{text}}}" if "_" in text else text


def _text(root: Node) -> str:
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
    """The LaTeX of a node from that of its children."""
    match node:
        case NumberLiteral() | Name() | String() | NoneLiteral():
            return _leaf(node)
        case ArrayLiteral():
            return _array(operands)
        case Negate():
            return TeX(f"-{bracketed(operands[0], _PRODUCT)}", SUM)
        case SumChain():
            return _sum(node, operands)
        case ProductChain():
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
            inside = ", ".join(operand.text for operand in operands[1:])
            return TeX(f"{_unindexed(bracketed(operands[0], ATOM))}_{{{inside}}}", ATOM)
        case FunctionCall():
            return called(node, operands)
        case Comprehension():
            return reduced(node, operands)
        case Compare() | BoolOp() | Not():
            return _condition(node, operands)
        case _:
            assert_never(node)


def _leaf(node: NumberLiteral | Name | String | NoneLiteral) -> TeX:
    match node:
        case NumberLiteral():
            return number_of(node.text)
        case Name():
            return TeX(name_of(node.text), ATOM)
        case String():
            return TeX(rf"\text{{{node.text}}}", ATOM)
        case NoneLiteral():
            return TeX(r"\cdot", ATOM)


def _array(items: Sequence[TeX]) -> TeX:
    """A column vector, or a matrix if all items are vectors that are written out."""
    is_matrix = all(item.entries for item in items)
    rows = [" & ".join(item.entries) if is_matrix else item.text for item in items]
    inside = r" \\ ".join(rows)
    entries = () if is_matrix else tuple(rows)
    return TeX(rf"\begin{{pmatrix}} {inside} \end{{pmatrix}}", ATOM, entries)


def _condition(node: Compare | BoolOp | Not, operands: Sequence[TeX]) -> TeX:
    match node:
        case Compare():
            left, right = operands
            return TeX(f"{left.text} {_COMPARED[node.op]} {right.text}", SUM)
        case BoolOp():
            return TeX(_JOINED[node.op].join(f"({operand.text})" for operand in operands), SUM)
        case Not():
            return TeX(rf"\neg ({operands[0].text})", SUM)


def _sum(node: SumChain, operands: Sequence[TeX]) -> TeX:
    parts = [operands[0].text]
    for term, operand in zip(node.rest, operands[1:], strict=True):
        parts.append(f"{term.op} {bracketed(operand, _PRODUCT)}")
    return TeX(" ".join(parts), SUM)


def _product(node: ProductChain, operands: Sequence[TeX]) -> TeX:
    """Factors side by side; quotients by `/` become fractions."""
    factors = [bracketed(operands[0], _PRODUCT)]
    single = operands[0]
    for term, operand in zip(node.rest, operands[1:], strict=True):
        if term.op == "/":
            above = single.text if len(factors) == 1 else "".join(factors)
            single = TeX(rf"\frac{{{above}}}{{{operand.text}}}", _FRACTION)
            factors = [single.text]
            continue
        right = bracketed(operand, _FRACTION)
        is_numeric = term.op == "*" and right[0].isdigit()
        factors += [r" \cdot " if is_numeric else _BETWEEN[term.op], right]
    return single if len(factors) == 1 else TeX("".join(factors), _PRODUCT)


def _slice(node: Slice, operands: Sequence[TeX]) -> TeX:
    rest = list(operands)
    low = rest.pop(0).text if node.lo is not None else ""
    high = rest.pop(0).text if node.hi is not None else ""
    step = f":{rest.pop(0).text}" if node.step is not None else ""
    return TeX(f"{low}:{high}{step}", ATOM)
