"""Bounds along rays beside the enclosures of autobound (Streeter and Dillon, arXiv:2212.11429).

    python benchmarks/rays_autobound.py --write FILE.npz     with slomodel
    python benchmarks/rays_autobound.py --read FILE.npz      with autobound 0.1.4 and JAX 0.4.23

autobound needs an older JAX than the other benchmarks do, and so an environment of its own with
`autobound jax==0.4.23 jaxlib==0.4.23 'numpy<2' 'scipy<1.13' typing_extensions`. The first command
writes, for every model, the start x, the direction v = −∇f/‖∇f‖ and the bounds over the first
certified step T and over 4T and 16T; the second encloses the same function in JAX along the same
rays, with polynomials of degree 2, and prints the table. Both bound φ(t) <= φ(0) + φ'(0)t + M t²/2
over [0, T]; the least such M is that of 257 points. 1 is the best. Times are those of one call of a
compiled function, over that of value and gradient by the same program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

Array = np.ndarray
LENGTHS = (1.0, 4.0, 16.0)
POINTS = 257

SOURCES = {
    "logistic": """
dim N, d
data X[N, d], y[N]
var w[d]
minimize sum(softplus(-y .* (X @ w))) + sumsq(w) / 2
""",
    "softplus network": """
dim N, d, h = 8
data X[N, d], y[N]
var W[h, d], a[h]
minimize sum((softplus(X @ W.T) @ a - y)^2) / N
""",
    "tanh network": """
dim N, d, h = 8
data X[N, d], y[N]
var W[h, d], a[h]
minimize sum(((2 * sigmoid(2 * X @ W.T) - 1) @ a - y)^2) / N
""",
    "phase retrieval": """
dim N, d
data X[N, d], y[N]
var w[d]
minimize sum(((X @ w)^2 - y^2)^2) / N
""",
    "mixture": """
dim N, d, K = 3
data X[N, d]
var m[K, d], a[K]
minimize -sum(log(sum(exp(a[k] - sumsq(X[i, :] - m[k, :]) / 2) for k in K)) for i in N) + sumsq(a)
""",
    "rosenbrock": """
dim n = 50
var x[n]
minimize sum(100 * (x[1:] - x[:-1]^2)^2 + (1 - x[:-1])^2)
""",
}


def data() -> dict[str, Array]:
    """A regression problem of 200 samples and 5 features, the same for all models."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=(200, 5))
    return {"X": X, "y": np.sign(X @ generator.normal(size=5) + generator.normal(size=200))}


def write(file: Path) -> None:
    """Write the rays and their bounds by slomodel."""
    import slomodel
    from benchmarks.rays import first_step, least_time

    result: dict[str, Array] = {}
    for name, source in SOURCES.items():
        needed = {key: value for key, value in data().items() if f"{key}[" in source}
        model = slomodel.compile(source, data=needed, backend="c")
        x = 0.5 * np.random.default_rng(1).normal(size=model.n)
        _, g = model.value_and_gradient(x)
        v = -g / np.linalg.norm(g)
        step = first_step(model.ray_bounds, x, v)
        assert step is not None
        ends = [step.T * length for length in LENGTHS]
        uppers = [model.ray_bounds(x, v, end).remainder_upper for end in ends]
        seconds = [
            least_time(lambda model=model, x=x, v=v, T=step.T: model.ray_bounds(x, v, T)),
            least_time(lambda model=model, x=x: model.value_and_gradient(x)),
        ]
        least = [
            least_majorant(lambda t, x=x, v=v, m=model: m.value(x + t * v), v @ g, end)
            for end in ends
        ]
        result |= {f"{name}/x": x, f"{name}/v": v, f"{name}/ends": np.asarray(ends)}
        result |= {f"{name}/uppers": np.asarray(uppers), f"{name}/least": np.asarray(least)}
        result |= {f"{name}/seconds": np.asarray(seconds)}
    np.savez(file, **result)


def least_majorant(value: Callable[[float], float], slope: float, end: float) -> float:
    """The least M of φ(t) <= φ(0) + φ'(0) t + M t²/2 at points of [0, end]."""
    ts = np.linspace(0.0, end, POINTS)[1:]
    start = value(0.0)
    return float(max(2.0 * (value(float(t)) - start - slope * t) / t**2 for t in ts[16:]))


Parts = tuple[Any, ...]


def functions() -> dict[str, tuple[Callable[[Any], Parts], Callable[[Parts], Any]]]:
    """The same objectives in the primitives that autobound has rules for.

    Slices are not among them: the first of a pair cuts x, and v, into the parts the second takes.
    """
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    X, y = (jnp.asarray(value) for value in data().values())
    d = X.shape[1]

    def layers(x: Any) -> Parts:
        return x[: 8 * d].reshape(8, d).T, x[8 * d :]

    def network(unit: Callable[[Any], Any]) -> Callable[[Parts], Any]:
        return lambda parts: jnp.sum((unit(X @ parts[0]) @ parts[1] - y) ** 2) / len(y)

    def mixture(parts: Parts) -> Any:
        apart = X[:, None, :] - parts[0]
        inner = parts[1] - jnp.sum(apart**2, axis=2) / 2
        return jnp.sum(parts[1] ** 2) - jnp.sum(jnp.log(jnp.sum(jnp.exp(inner), axis=1)))

    return {
        "logistic": (
            lambda x: (x,),
            lambda parts: (
                jnp.sum(jax.nn.softplus(-y * (X @ parts[0]))) + jnp.sum(parts[0] ** 2) / 2
            ),
        ),
        "softplus network": (layers, network(jax.nn.softplus)),
        "tanh network": (layers, network(lambda u: 2 * jax.nn.sigmoid(2 * u) - 1)),
        "phase retrieval": (
            lambda x: (x,),
            lambda parts: jnp.sum(((X @ parts[0]) ** 2 - y**2) ** 2) / len(y),
        ),
        "mixture": (lambda x: (x[: 3 * d].reshape(1, 3, d), x[None, 3 * d :]), mixture),
        "rosenbrock": (
            lambda x: (x[1:], x[:-1]),
            lambda parts: jnp.sum(100 * (parts[0] - parts[1] ** 2) ** 2 + (1 - parts[1]) ** 2),
        ),
    }


def read(file: Path) -> None:
    """Print the table, with autobound's enclosures of the same rays."""
    import autobound.jax as autobound
    import jax
    import jax.numpy as jnp

    saved = np.load(file)
    print("| model | T | M / least, slomodel | autobound | time / gradient | autobound |")
    print("|---|---|---|---|---|---|")
    for name, (cut, f) in functions().items():
        x, v = jnp.asarray(saved[f"{name}/x"]), jnp.asarray(saved[f"{name}/v"])
        ours, gradient = saved[f"{name}/seconds"]

        pairs = tuple(zip(cut(x), cut(v), strict=True))

        def along(t: Any, f: Any = f, pairs: Any = pairs) -> Any:
            return f(tuple(start + t * direction for start, direction in pairs))

        try:
            enclosed = autobound.taylor_bounds(along, max_degree=2)
            over = jax.jit(lambda end, e=enclosed: e(0.0, (0.0, end)).coefficients[2][1])
            theirs = seconds(lambda over=over, end=saved[f"{name}/ends"][0]: over(end))
        except NotImplementedError as error:
            print(f"| {name} | – | – | no rule for {error} | {ours / gradient:.1f} | – |")
            continue
        both = jax.jit(jax.value_and_grad(lambda x, f=f, cut=cut: f(cut(x))))
        share = theirs / seconds(lambda both=both, x=x: both(x)[1])
        lines = zip(*(saved[f"{name}/{key}"] for key in ("ends", "uppers", "least")), strict=True)
        for k, (end, upper, least) in enumerate(lines):
            other = 2.0 * float(over(end))
            costs = f"{ours / gradient:.1f} | {share:.1f}" if k == 0 else " | "
            print(f"| {name} | {end:.2g} | {upper / least:.4g} | {other / least:.4g} | {costs} |")


def seconds(call: Callable[[], Any]) -> float:
    """Least seconds of 50 calls after the first."""
    call().block_until_ready()
    times = []
    for _ in range(50):
        began = perf_counter()
        call().block_until_ready()
        times.append(perf_counter() - began)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--read", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
    if arguments.read:
        read(arguments.read)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
