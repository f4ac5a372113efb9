"""A compiled numexpr kernel in two threads aborts the process; each thread has its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

HAMMER = """
import sys, threading
import numexpr, numpy as np, slomodel
from slomodel.codegen import schedule
numexpr.set_num_threads(1)
schedule.worth_fusing = lambda group, elements: len(group.times) > 1  # whatever is quicker
text = "dim n data a[n] var x[n] minimize sum((a .* x + 1)^2 .* (x - a) + a ./ (1 + x^2) - x)"
rng = np.random.default_rng(0)
size = 500_000
model = slomodel.compile(text, data={"a": rng.normal(size=size)}, backend=sys.argv[1])
assert sys.argv[1] == "numpy" or "NumExpr(" in model.source()
points = rng.normal(size=(4, size))
expected = [model.value_and_gradient(point) for point in points]
found = {}

def work(k):
    for _ in range(15):
        found[k] = model.value_and_gradient(points[k])

threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
for k, (value, gradient) in enumerate(expected):
    assert found[k][0] == value and (found[k][1] == gradient).all()
print("equal")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["numexpr", "numpy"])
def test_four_threads_on_one_model_with_one_numexpr_thread(backend: str) -> None:
    command = [sys.executable, "-c", HAMMER, backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "equal"), done.stderr
