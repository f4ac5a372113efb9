"""A jump of f is not a rounding error: no run climbs it, and none takes its foot as a solution."""

import numpy as np
import pytest

from slomodel.solve import Functions, solve


@pytest.mark.parametrize("height", [5.0, 1e6])
@pytest.mark.parametrize("options", [{}, {"initial_step": "full"}, {"direction": "lbfgs"}])
def test_the_best_point_is_kept_at_a_jump(height: float, options: dict[str, str]) -> None:
    def fun(x: np.ndarray) -> float:
        return float(x[0] ** 2 + (0.0 if x[0] > 0.3 else height))

    seen: list[float] = []
    objective = Functions(fun, lambda x: 2.0 * x, 1)
    found = solve(
        objective, [2.0], method="norm-armijo", callback=lambda s: seen.append(s.fun), **options
    )
    assert found.fun <= min(seen)
    assert found.fun < 1.0
    assert not found.success
