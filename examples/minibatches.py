"""Fit on minibatches with an optimiser of optax or torch, then finish with `solve`.

python examples/minibatches.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import slomodel
from slomodel.solve.norms import Vector

TEXT = """
dim N, p
data A[N, p], y[N]
var w[p], b init 0
minimize mean(softplus(-y .* (A @ w + b))) + 0.01 * sumsq(w)
"""


def with_optax(x: Vector, gradient: Callable[[Vector, int], Vector], steps: int) -> Vector:
    """Adam of optax: its updates are added to the point."""
    import optax

    optimiser = optax.adam(0.05)
    state = optimiser.init(x)
    for step in range(steps):
        updates, state = optimiser.update(gradient(x, step), state)
        x = x + np.asarray(updates, dtype=np.float64)
    return x


def with_torch(x: Vector, gradient: Callable[[Vector, int], Vector], steps: int) -> Vector:
    """Adam of torch: the gradient is put where its backward pass would put it."""
    import torch

    point = torch.tensor(x, requires_grad=True)
    optimiser = torch.optim.Adam([point], lr=0.05)
    for step in range(steps):
        point.grad = torch.from_numpy(gradient(point.detach().numpy(), step))
        optimiser.step()
    found: Vector = point.detach().numpy()
    return found


def main() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5000, 10))
    y = np.sign(A @ rng.normal(size=10) + 0.5 * rng.normal(size=5000))
    model = slomodel.compile(TEXT, data={"A": A, "y": y})
    batches = slomodel.minibatches(model, 100, seed=1)

    def gradient(x: Vector, step: int) -> Vector:
        return batches.value_and_gradient(x, step)[1]

    x = model.x0(0)
    for package in (with_optax, with_torch):
        try:
            x = package(x, gradient, steps=2 * batches.batches)
        except ModuleNotFoundError as error:
            print(f"{error.name} is not installed")
            continue
        print(f"{package.__name__}: objective {model.value(x):.6f}")
        break
    solution = model.solve(x0=x)
    print(f"{solution.status.value}: objective {solution.fun:.6f}")


if __name__ == "__main__":
    main()
