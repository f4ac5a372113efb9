"""Random recurrences: values and derivatives of loops against those of their written steps."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.bounds import Setting
from slomodel.bounds.structure.recurrences import written_out
from slomodel.calculus import gradient, jvp
from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.ir import build
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.walk import inputs, postorder
from slomodel.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

T, K = 6, 2
NAMES = ("p", "q", "r")
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


def _definition(draw: np.random.Generator, kinds: dict[str, bool], k: int, names: list[str]) -> str:
    name = names[k]
    inside = "k" if kinds[name] else ""
    most = int(draw.integers(1, 4))
    terms = []
    for _ in range(int(draw.integers(1, 4))):
        other = str(draw.choice(names))
        early = names.index(other) < k
        lag = int(draw.integers(0 if early else 1, most + 1))
        text = str(draw.choice(FUNCTIONS)).replace("{}", _read(draw, kinds, other, lag, inside))
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


def text_of(seed: int) -> str:
    draw = np.random.default_rng(seed)
    names = list(NAMES[: int(draw.integers(1, 4))])
    kinds = {name: bool(draw.random() < 0.5) for name in names}
    parts = [_definition(draw, kinds, k, names) for k in range(len(names))]
    draw.shuffle(parts)
    ends = [
        f"sum({name} .* {'W' if kinds[name] else 'y'})" if draw.random() < 0.4 else f"sumsq({name})"
        for name in names
        if draw.random() < 0.8 or name == names[0]
    ]
    return f"""dim T, K  data y[T], A[K, K], W[T, K]  var x[T], a, b, c[K]
    let {chr(10).join(parts).replace(chr(10), chr(10) + "    and ")}
    minimize {" + ".join(ends)} + 0.1 * (sumsq(x) + a^2 + b^2 + sumsq(c)) + 0 * sum(A) * sum(W)"""


def _setting(seed: int) -> Setting:
    """The model of a seed at a random point, as it was written."""
    source, draw = SourceText(text_of(seed)), np.random.default_rng(seed)
    problem = elaborate(parse(source), source)
    shapes = {"y": (T,), "A": (K, K), "W": (T, K), "x": (T,), "a": (), "b": (), "c": (K,)}
    arrays = {name: np.asarray(draw.normal(size=shape)) for name, shape in shapes.items()}
    nodes = {*inputs(problem.objective), *problem.inputs}
    values = {node: arrays[node.name] for node in nodes}
    return Setting(problem.objective, problem.inputs, values, {"T": T, "K": K})


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_are_those_of_the_written_steps(seed: int) -> None:
    setting = _setting(seed)
    steps = written_out(setting).objective
    assert steps is not setting.objective
    assert not any(isinstance(node, Recur) for node in postorder(steps))
    draw = np.random.default_rng(seed)
    along = {v: build.direction(f"d {v.name}", v.shape) for v in setting.variables}
    moved = {d: np.asarray(draw.normal(size=np.shape(setting.values[v]))) for v, d in along.items()}

    def numbers(objective: Expr) -> np.ndarray:
        slopes = gradient(objective, setting.variables)
        products = jvp(slopes, along)
        third = jvp(products, along)
        again = gradient(build.sum_over(slopes[0], (0,)), setting.variables)
        roots = [objective, *slopes, *products, *third, *again]
        found = evaluate(roots, {**setting.values, **moved}, setting.sizes)
        return np.concatenate([np.ravel(one) for one in found])

    np.testing.assert_allclose(numbers(setting.objective), numbers(steps), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 1)) for k in range(8)]
)
def test_targets_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    data = {"y": draw.normal(size=T), "A": draw.normal(size=(K, K)), "W": draw.normal(size=(T, K))}
    z, v = draw.normal(size=T + 2 + K), draw.normal(size=T + 2 + K)
    models = [
        slomodel.compile(text_of(seed), data=data, backend=target)
        for target in ("numpy", "numexpr", "c")
    ]
    f, g = models[0].value_and_gradient(z)
    for model in models[1:]:
        for _ in range(2):  # working arrays of before must not be read
            value, slope = model.value_and_gradient(z)
            assert value == pytest.approx(f, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(slope, g, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(model.hvp(z, v), models[0].hvp(z, v), rtol=1e-8, atol=1e-9)
