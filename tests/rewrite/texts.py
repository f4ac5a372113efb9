"""The graph of an expression in text, and the functions in a graph."""

from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.ir.expr import Expr, Extreme, Map
from slomodel.ir.walk import postorder
from slomodel.problem import Problem


def problem_of(text: str) -> Problem:
    source = SourceText("var x, y, v[3], A[2, 3]\nminimize " + text)
    return elaborate(parse(source), source)


def functions_of(root: Expr) -> set[str]:
    """Names of the functions in a graph, but for arithmetic."""
    plain = {"add", "sub", "mul", "div", "neg"}
    return {
        node.function.name if isinstance(node, Map) else "extreme"
        for node in postorder(root)
        if isinstance(node, (Map, Extreme))
    } - plain
