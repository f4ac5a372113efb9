"""Export the kernels as a module that only needs NumPy, import it and call it.

python examples/take_the_source.py
"""

import runpy
import tempfile
from pathlib import Path

import numpy as np

import slomodel

MODELS = Path(__file__).parent.parent / "models"

model = slomodel.compile(MODELS / "phase_retrieval.slo", dims={"n": 20, "m": 200})
source = model.source("numpy")
print(source)

rng = np.random.default_rng(0)
A, x = rng.standard_normal((200, 20)), rng.standard_normal(20)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "phase_retrieval.py"
    path.write_text(source, encoding="utf-8")
    kernels = runpy.run_path(str(path))
f, g = kernels["value_and_gradient"](x + 1.0, {"A": A, "y": (A @ x) ** 2})
print("value", f, "gradient norm", np.linalg.norm(g))
