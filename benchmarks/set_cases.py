"""Problems in sets with known minima: their models, starts, values and gradients at points."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import slomodel
from slomodel.errors import NonsmoothWarning

Vector = NDArray[np.float64]

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "sets"
CASES = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
ARRAYS: dict[str, Vector] = dict(np.load(FOLDER / "arrays.npz"))
NOT_DATA = ("start", "points", "gradients", "minimiser")


@dataclass(frozen=True)
class Case:
    """One problem: its minimum, other stationary values, and facts about the set of its start."""

    name: str

    @property
    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = CASES[self.name]
        return facts

    def array(self, name: str) -> Vector:
        return ARRAYS[f"{self.name}/{name}"]

    @property
    def tags(self) -> list[str]:
        tags: list[str] = CASES[self.name]["tags"]
        return tags

    def model(self, backend: str = "auto") -> slomodel.Model:
        prefix = f"{self.name}/"
        given = {key.removeprefix(prefix): a for key, a in ARRAYS.items() if key.startswith(prefix)}
        data = {key: a for key, a in given.items() if key not in NOT_DATA}
        dims = {"n": 500} if self.name == "biggsb1" else None
        path = str(FOLDER / f"{self.name}.slo")
        with warnings.catch_warnings():
            # 1/norm has no kink where it is finite.
            warnings.simplefilter("ignore", NonsmoothWarning)
            return slomodel.compile(path, data=data, dims=dims, backend=backend)

    def is_right(self, fun: float, first: float) -> bool:
        """Whether a value is that of the minimum, or of another stationary point, within 1e-6.

        The unit is max(|f*|, min(1, f(start) − f*)).
        """
        best: float = CASES[self.name]["value"]
        room = 1e-6 * max(abs(best), min(1.0, first - best))
        others: list[float] = CASES[self.name]["others"]
        return fun - best <= room or any(abs(fun - other) <= room for other in others)


def case(name: str) -> Case:
    return Case(name)
