"""Rays of random graphs by compiled kernels, as benchmarks/rays_fuzz.py tries them."""

from __future__ import annotations

import numpy as np
import pytest
from calculus.rays_of_graphs import thrown

from benchmarks.rays_fuzz import CompiledRays, margins
from slomodel.errors import MissingRule


def test_compiled_rays_are_those_of_the_reference() -> None:
    rng = np.random.default_rng(5)
    for _ in range(8):
        try:
            own = CompiledRays(thrown(rng, "smooth", 2))
        except MissingRule:
            continue
        rays, numbers = own.rays(200, rng)
        found = margins(numbers)
        assert not np.any(found < 0.0)
        for k in (0, 7):
            proved = np.array(own.one(rays[k]).proved())
            same = np.isclose(numbers[k, :14], proved, rtol=1e-6, atol=1e-300, equal_nan=True)
            # Ends of ranges are small beside those of wide ranges, as radii are beside values.
            scale = np.abs(proved[np.isfinite(proved)]).max()
            assert np.all(same | (np.abs(numbers[k, :14] - proved) <= 1e-9 * scale))
        return
    pytest.fail("no ray with a proof")
