"""Random models with recurrences of several states, lags and kinds of steps."""

from __future__ import annotations

import numpy as np

from slomodel.bounds import ObjectivePart
from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.ir.walk import inputs

T, K = 6, 2
NAMES = ("p", "q", "r")
SMOOTH = ("sin({})", "tanh({})", "{}", "exp(-({})^2)", "log(1 + exp({}))")
FUNCTIONS = (
    "sin({})",
    "tanh({})",
    "{}",
    "exp(-({})^2)",
    "where({} > 0.2, 0.5, {})",
    "log(1 + exp({}))",
)


def _read(
    draw: np.random.Generator, kinds: dict[str, bool], name: str, lag: int, inside: str
) -> str:
    """An element of a state, some steps ago, at the later index or reduced over it."""
    step = f"t-{lag}" if lag else "t"
    if not kinds[name]:
        return f"{name}[{step}]"
    if inside and draw.random() < 0.6:
        return f"{name}[{step}, {inside}]"
    return str(draw.choice(["sum({}[{}, :])", "logsumexp({}[{}, :])", "dot(c, {}[{}, :])"])).format(
        name, step
    )


def _definition(
    draw: np.random.Generator,
    kinds: dict[str, bool],
    k: int,
    names: list[str],
    functions: tuple[str, ...],
) -> str:
    name = names[k]
    inside = "k" if kinds[name] else ""
    most = int(draw.integers(1, 4))
    terms = []
    for _ in range(int(draw.integers(1, 4))):
        other = str(draw.choice(names))
        early = names.index(other) < k
        lag = int(draw.integers(0 if early else 1, most + 1))
        text = str(draw.choice(functions)).replace("{}", _read(draw, kinds, other, lag, inside))
        weight = str(
            draw.choice(["0.5", "a", "y[t]", "y[t-1] * a", "c[k]" if inside else "b", "b"])
        )
        terms.append(f"{weight} * {text}")
    if draw.random() < 0.3 and inside:
        terms.append(f"sum(A[k, j] * {name}[t-1, j] for j in K)")
    terms.append("x[t]" if draw.random() < 0.5 else "y[t]")
    firsts = ["a", "x[0]", "0.3", "c[k]" if inside else "b"]
    first = ", ".join(str(draw.choice(firsts)) for _ in range(most))
    index = ", k in K" if inside else ""
    return f"{name}[t in T{index}] = {' + '.join(terms)} first {first}"


def text_of(seed: int, functions: tuple[str, ...] = FUNCTIONS) -> str:
    """The text of a model; `functions` are those of what a step reads."""
    draw = np.random.default_rng(seed)
    names = list(NAMES[: int(draw.integers(1, 4))])
    kinds = {name: bool(draw.random() < 0.5) for name in names}
    parts = [_definition(draw, kinds, k, names, functions) for k in range(len(names))]
    draw.shuffle(parts)
    ends = [
        f"sum({name} .* {'W' if kinds[name] else 'y'})" if draw.random() < 0.4 else f"sumsq({name})"
        for name in names
        if draw.random() < 0.8 or name == names[0]
    ]
    return f"""dim T, K  data y[T], A[K, K], W[T, K]  var x[T], a, b, c[K]
    let {chr(10).join(parts).replace(chr(10), chr(10) + "    and ")}
    minimize {" + ".join(ends)} + 0.1 * (sumsq(x) + a^2 + b^2 + sumsq(c)) + 0 * sum(A) * sum(W)"""


def setting_of_seed(seed: int, functions: tuple[str, ...] = FUNCTIONS) -> ObjectivePart:
    """The model of a seed at a random point, as it was written."""
    source, draw = SourceText(text_of(seed, functions)), np.random.default_rng(seed)
    problem = elaborate(parse(source), source)
    shapes = {"y": (T,), "A": (K, K), "W": (T, K), "x": (T,), "a": (), "b": (), "c": (K,)}
    arrays = {name: np.asarray(draw.normal(size=shape)) for name, shape in shapes.items()}
    nodes = {*inputs(problem.objective), *problem.inputs}
    values = {node: arrays[node.name] for node in nodes}
    return ObjectivePart(problem.objective, problem.inputs, values, {"T": T, "K": K})
