"""Measures the costs of elementwise kernels that functions/cost.py and the functions state.

    python benchmarks/kernel_costs.py            the costs, to be read before they are copied
    python benchmarks/kernel_costs.py --check    how often the choice of cost.py is a good one

Costs per element are slopes in cache, on one thread: of a ufunc with `out=`, and of what a function
adds to a kernel that reads and adds its operands anyway. A function that no target spells is
measured by the text generated for its form, whose costs add up to its own. With `--check` typical
kernels and the models of models/ are generated three times, as chosen, all fused and not fused, and
timed against each other on `--threads` threads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numexpr
import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.by_hand import Array
from benchmarks.choices import check
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.runtime import load
from slomodel.functions import TABLE, cost
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr
from slomodel.ir.function import Cost, ScalarFunction

IN_CACHE = 8_192
OUT_OF_CACHE = 4_000_000
REPEATS = 15
SECONDS_A_RUN = 2e-3

Call = Callable[[], object]


def nanoseconds(call: Call) -> float:
    """Nanoseconds per call without the loop around it: the median over runs."""
    clock = time.process_time if numexpr.get_num_threads() == 1 else time.perf_counter
    call()
    start = time.perf_counter()
    call()
    number = max(1, int(SECONDS_A_RUN / max(time.perf_counter() - start, 1e-7)))
    times = []
    for _ in range(REPEATS):
        start = clock()
        for _ in range(number):
            call()
        middle = clock()
        for _ in range(number):
            pass
        times.append((2 * middle - start - clock()) / number)
    return 1e9 * float(np.median(times))


def operands(n: int) -> dict[str, Array]:
    """Four arrays of reals in (0.1, 0.9), one of truths, and one for results."""
    rng = np.random.default_rng(3)
    reals = {f"x{k}": rng.uniform(0.1, 0.9, n) for k in range(4)}
    return {**reals, "b0": reals["x0"] < 0.5, "out": np.empty(n), "truth": np.empty(n, bool)}


def numpy_nanoseconds(function: ScalarFunction, n: int) -> float:
    """One call of the ufunc for n elements."""
    out = "truth" if function.result == "bool" else "out"
    line = function.spelling["numpy"].format(*_names(function, 0), out=out)
    return _nanoseconds_of(line, n) - _nanoseconds_of("pass", n)


def _nanoseconds_of(line: str, n: int) -> float:
    made = f"def make({', '.join(operands(1))}):\n    def call():\n        {line}\n    return call"
    head = "import numpy as np\nfrom scipy import special"
    make = load(f"{head}\n{made}\n", "costs")["make"]
    call: Call = make(*operands(n).values())  # type: ignore[assignment]
    return nanoseconds(call)


def _names(function: ScalarFunction, first: int) -> list[str]:
    kinds = function.operand_types or ("real",) * function.arity
    return [
        "b0" if kind == "bool" else f"x{(first + k) % 4}"
        for k, kind in zip(range(function.arity), kinds, strict=True)
    ]


def kernel_nanoseconds(text: str, n: int) -> float:
    """One call of a compiled kernel over n elements."""
    given = operands(n)
    names = [name for name in given if name in text]
    kinds = [(name, bool if name == "b0" else np.double) for name in names]
    kernel = numexpr.NumExpr(text, kinds)
    arrays, out = [given[name] for name in names], given["out"]
    timed = nanoseconds(lambda: kernel(*arrays, out=out, ex_uses_vml=False))
    return timed - _nanoseconds_of("pass", n)


def added_nanoseconds(function: ScalarFunction, n: int) -> float:
    """The cost that one use of the function adds to a kernel over n elements."""
    if function.result == "bool":
        term = function.spelling["numexpr"].format(*_names(function, 0))
        with_it = kernel_nanoseconds(f"where({term}, x2, x3)", n)
        return max(0.0, with_it - kernel_nanoseconds("where(b0, x2, x3)", n))
    terms = [function.spelling["numexpr"].format(*_names(function, k)) for k in range(4)]
    with_it = kernel_nanoseconds(" + ".join(terms), n)
    return max(0.0, with_it - kernel_nanoseconds("x0 + x1 + x2 + x3", n)) / 4


def form_nanoseconds(function: ScalarFunction, target: str, n: int) -> float:
    """Time of a call of the generated text of the function on n elements, less that of their sum;
    with numexpr in as few kernels as possible.
    """
    given = operands(n)
    names = _names(function, 0)
    inputs = {name: build.variable(name, (literal(n),)) for name in dict.fromkeys(names)}
    x = np.concatenate([given[name] for name in inputs])

    def timed(root: Expr) -> float:
        own = Derivatives(build.sum_over(root, (0,)), list(inputs.values()))
        with patch("slomodel.codegen.groups.numexpr_time", lambda functions, n: 0.0):
            kernels = Kernels(Compiled("costs", own, (), {}, TARGETS[target]), {})
            value = kernels.function("value")
        return nanoseconds(lambda: value(x))  # type: ignore[call-arg]

    return timed(function(*(inputs[name] for name in names))) - timed(inputs[names[0]])


def measured(function: ScalarFunction) -> Cost:
    """Nanoseconds per element by NumPy and in a kernel."""
    if not function.spelling:
        found = []
        for target in ("numpy", "numexpr"):
            small, large = (form_nanoseconds(function, target, n) for n in (64, IN_CACHE))
            found.append((large - small) / (IN_CACHE - 64))
        return Cost(*found)
    small = numpy_nanoseconds(function, 64)
    numpy = (numpy_nanoseconds(function, IN_CACHE) - small) / (IN_CACHE - 64)
    if "numexpr" not in function.spelling:
        return Cost(numpy)
    return Cost(numpy, added_nanoseconds(function, IN_CACHE) / IN_CACHE)


def constants(threads: int) -> dict[str, float]:
    """The numbers of cost.py that are not an operation's; `threads` for the last of them."""
    add = TABLE["add"]
    text = "x0 + x1 * x2 + x3"
    numexpr.set_num_threads(1)
    alone = kernel_nanoseconds(text, cost.THREADS_FROM), kernel_nanoseconds(text, OUT_OF_CACHE)
    found = {
        "NUMPY_CALL": numpy_nanoseconds(add, 1),
        "NUMEXPR_CALL": kernel_nanoseconds(text, 1),
    }
    numexpr.set_num_threads(threads)
    shared = kernel_nanoseconds(text, cost.THREADS_FROM), kernel_nanoseconds(text, OUT_OF_CACHE)
    numexpr.set_num_threads(1)
    return found | {
        "THREADS_WAKE": shared[0] - alone[0] / threads,
        "THREADS_GAIN": alone[1] / shared[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the costs of elementwise kernels.")
    parser.add_argument("--check", action="store_true", help="time the choices of cost.py")
    parser.add_argument("--threads", type=int, default=1, help="for --check and THREADS_… only")
    options = parser.parse_args()
    if options.check:
        numexpr.set_num_threads(options.threads)
        print(check(time.process_time if options.threads == 1 else time.perf_counter))
        return
    numexpr.set_num_threads(1)
    for name, number in constants(max(2, options.threads)).items():
        used = f"{getattr(cost, name):g}" if name in vars(cost) else "not used"
        print(f"{name} = {number:.3g}  # {used}")
    for name, function in TABLE.items():
        found, known = measured(function), cost.cost_of(function)
        used = f"{known.numpy:.4g}, {known.numexpr:.4g}"
        source = "" if function.spelling else " of its form"
        print(f"{name}: Cost({found.numpy:.2f}, {found.numexpr:.2f})  # {used}{source}")


if __name__ == "__main__":
    main()
