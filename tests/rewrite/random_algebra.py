"""Random spellings of a formula by identities of algebra and of elementary functions.

A formula is a tree of Python's grammar; a spelling replaces subtrees by ones that are equal in
exact arithmetic. Factors are powers of two, so that no constant is rounded. Identities of
logarithms and roots are used where their operands are positive at the point of the test.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

import mpmath as mp
import numpy as np

FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "exp": mp.exp,
    "log": mp.log,
    "sqrt": mp.sqrt,
    "log1p": mp.log1p,
    "expm1": mp.expm1,
    "tanh": mp.tanh,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "atan": mp.atan,
    "cbrt": mp.cbrt,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "normcdf": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)),
}
_OPERATORS: Mapping[type[ast.operator], tuple[str, Callable[[object, object], object]]] = {
    ast.Add: ("+", lambda a, b: a + b),  # type: ignore[operator]
    ast.Sub: ("-", lambda a, b: a - b),  # type: ignore[operator]
    ast.Mult: ("*", lambda a, b: a * b),  # type: ignore[operator]
    ast.Div: ("/", lambda a, b: a / b),  # type: ignore[operator]
    ast.Pow: ("^", lambda a, b: a**b),  # type: ignore[operator]
}


def tree(text: str) -> ast.expr:
    """The tree of a formula in the language of models."""
    return ast.parse(text.replace("^", "**"), mode="eval").body


def value(node: ast.expr, at: Mapping[str, object]) -> object:
    """The value of a formula in mpmath; `at` holds the variables."""
    match node:
        case ast.Constant(value=number):
            return mp.mpf(number)
        case ast.Name(id=name):
            return at[name]
        case ast.UnaryOp(operand=inner):
            return -value(inner, at)  # type: ignore[operator]
        case ast.BinOp(left=left, op=operator, right=right):
            return _OPERATORS[type(operator)][1](value(left, at), value(right, at))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(value(one, at) for one in arguments))
    raise ValueError(ast.dump(node))


def written(node: ast.expr) -> str:
    """The text of a formula, with all its brackets."""
    match node:
        case ast.Constant(value=number):
            return repr(number)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(operand=inner):
            return f"(-{written(inner)})"
        case ast.BinOp(left=left, op=operator, right=right):
            return f"({written(left)} {_OPERATORS[type(operator)][0]} {written(right)})"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return f"{name}({', '.join(map(written, arguments))})"
    raise ValueError(ast.dump(node))


def spelling(
    root: ast.expr, rng: np.random.Generator, at: Mapping[str, object], changes: int
) -> ast.expr:
    """The formula after random changes of its subtrees."""
    for _ in range(changes):
        places = list(_places(root))
        chosen = places[int(rng.integers(len(places)))]
        options = list(_equal(chosen, at))
        if chosen is root:
            options += _with_constants(root)
        if options:
            root = _replaced(root, chosen, options[int(rng.integers(len(options)))])
    return root


def _with_constants(root: ast.expr) -> Iterator[ast.expr]:
    """A product or quotient, with other constants, which are rounded, in its factors."""
    match root:
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            yield _of(_of(_THREE, "*", a), "/", _of(b, "*", _THREE))
            yield _of(_of(a, "/", _THREE), "/", _of(b, "/", _THREE))
            yield _of(a, "*", _of(_THREE, "/", _of(_THREE, "*", b)))
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            yield _of(_of(_THREE, "*", a), "*", _of(b, "/", _THREE))


def _places(root: ast.expr) -> Iterator[ast.expr]:
    yield root
    for one in _operands(root):
        yield from _places(one)


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.UnaryOp(operand=inner):
            return [inner]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(args=arguments):
            return arguments
    return []


def _replaced(root: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    if root is old:
        return new
    match root:
        case ast.UnaryOp(op=operator, operand=inner):
            return ast.UnaryOp(operator, _replaced(inner, old, new))
        case ast.BinOp(left=left, op=operator, right=right):
            return ast.BinOp(_replaced(left, old, new), operator, _replaced(right, old, new))
        case ast.Call(func=function, args=arguments):
            return ast.Call(function, [_replaced(one, old, new) for one in arguments], [])
    return root


def _of(left: ast.expr, operator: str, right: ast.expr) -> ast.expr:
    kind = next(one for one, (sign, _) in _OPERATORS.items() if sign == operator)
    return ast.BinOp(left, kind(), right)


def _call(name: str, inner: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), [inner], [])


def _minus(inner: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), inner)


_HALF, _ONE, _TWO, _THREE = (ast.Constant(value) for value in (0.5, 1, 2, 3))


def _equal(node: ast.expr, at: Mapping[str, object]) -> Iterator[ast.expr]:
    """Formulas that equal this one."""
    if isinstance(node, ast.Constant):
        return
    yield _minus(_minus(node))
    yield _of(_of(_TWO, "*", node), "/", _TWO)
    yield _of(node, "*", _ONE)
    match node:
        case ast.BinOp(left=a, op=operator, right=b):
            yield from _of_operator(_OPERATORS[type(operator)][0], a, b)
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            yield from _of_function(name, inner, at)


def _of_operator(sign: str, a: ast.expr, b: ast.expr) -> Iterator[ast.expr]:
    match sign:
        case "+":
            yield _of(b, "+", a)
            yield _of(a, "-", _minus(b))
            yield _minus(_of(_minus(a), "-", b))
            yield _of(_TWO, "*", _of(_of(a, "/", _TWO), "+", _of(_HALF, "*", b)))
        case "-":
            yield _minus(_of(b, "-", a))
            yield _of(a, "+", _minus(b))
            yield _of(_minus(b), "+", a)
        case "*":
            yield _of(b, "*", a)
            yield _of(a, "/", _of(_ONE, "/", b))
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Add | ast.Sub):
                sign = "+" if isinstance(a.op, ast.Add) else "-"
                yield _of(_of(a.left, "*", b), sign, _of(a.right, "*", b))
        case "/":
            yield _of(a, "*", _of(_ONE, "/", b))
            yield _of(_minus(a), "/", _minus(b))
            if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Add | ast.Sub):
                sign = "+" if isinstance(a.op, ast.Add) else "-"
                yield _of(_of(a.left, "/", b), sign, _of(a.right, "/", b))
        case "^" if isinstance(b, ast.Constant) and b.value == 2:
            yield _of(a, "*", a)


def _of_function(name: str, a: ast.expr, at: Mapping[str, object]) -> Iterator[ast.expr]:
    match name, a:
        case "exp", ast.BinOp(left=left, op=ast.Add(), right=right):
            yield _of(_call("exp", left), "*", _call("exp", right))
        case "exp", ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield _of(_call("exp", left), "/", _call("exp", right))
        case "log", ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operator, right=right):
            if value(left, at) > 0 and value(right, at) > 0:  # type: ignore[operator]
                sign = "+" if isinstance(operator, ast.Mult) else "-"
                yield _of(_call("log", left), sign, _call("log", right))
    match name:
        case "exp":
            yield _of(_ONE, "/", _call("exp", _minus(a)))
            yield _of(_call("exp", _of(a, "/", _TWO)), "^", _TWO)
        case "expm1":
            yield _of(_call("exp", a), "-", _ONE)
        case "log":
            yield _minus(_call("log", _of(_ONE, "/", a)))
        case "log1p":
            yield _call("log", _of(_ONE, "+", a))
        case "sqrt":
            yield _of(a, "^", _HALF)
        case "sigmoid":
            yield _of(_ONE, "/", _of(_ONE, "+", _call("exp", _minus(a))))
            yield _of(_ONE, "-", _call("sigmoid", _minus(a)))
        case "softplus":
            yield _call("log", _of(_ONE, "+", _call("exp", a)))
        case "tanh":
            yield _of(_of(_TWO, "*", _call("sigmoid", _of(_TWO, "*", a))), "-", _ONE)
            yield _minus(_call("tanh", _minus(a)))
        case "sinh":
            yield _of(_of(_call("exp", a), "-", _call("exp", _minus(a))), "/", _TWO)
        case "cosh":
            yield _of(_HALF, "*", _of(_call("exp", _minus(a)), "+", _call("exp", a)))
        case "erfc":
            yield _of(_ONE, "-", _call("erf", a))
        case "erf":
            yield _minus(_call("erf", _minus(a)))
        case "normcdf":
            yield _of(_ONE, "-", _call("normcdf", _minus(a)))
