"""The very CUDA text, run on the CPU in several orders of its threads, against NumPy."""

from __future__ import annotations

import pytest
from codegen.cuda.everything import LENGTHS, differs, evaluated


@pytest.mark.usefixtures("cupy_on_cpu")
@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_kernel_at_lengths_round_those_of_blocks(n: int) -> None:
    # Products with the Hessian at fewer lengths: their kernels take as long to compile again.
    results = 2 if n in (0, 33, 257) else 1
    assert differs(evaluated(n, "cupy", results), evaluated(n, "numpy", results)) < 1e-12
