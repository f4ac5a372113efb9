"""Value and gradient of the models of practice in JAX, as someone who knows it writes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from benchmarks import practice_jax_formulas as formulas
from benchmarks import practice_jax_matrices as matrices
from benchmarks import practice_jax_recurrences as recurrences
from benchmarks.by_hand import Array, Arrays

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
jax.config.update("jax_enable_x64", True)
# Short calls are faster without another thread.
jax.config.update("jax_cpu_enable_async_dispatch", False)

Formula = Callable[[Arrays, jax.Array], jax.Array]

FORMULAS: dict[str, Formula] = {
    formula.__name__: formula
    for formula in (
        formulas.accidents_spatial,
        formulas.ar5,
        formulas.bird_counts_sites,
        formulas.bone_age_grades,
        formulas.bundle_small,
        formulas.capture_recapture,
        formulas.cox_recidivism,
        formulas.digit_tv_deblur,
        formulas.dogs_learning,
        formulas.downloads_trend,
        formulas.drivers_state_space,
        formulas.earnings_student_t,
        formulas.eight_schools,
        formulas.election_multilevel,
        formulas.gasoline_beta,
        formulas.gene_horseshoe,
        formulas.iris_embedding,
        formulas.irt_2pl_matrix,
        formulas.item_response_pairs,
        formulas.lecture_ratings,
        formulas.lennard_jones_13,
        formulas.lynx_threshold_ar,
        formulas.mixture_five,
        formulas.mixture_ordered,
        formulas.motorcycle_splines,
        formulas.party_multinomial,
        formulas.rater_error_rates,
        formulas.rating_scale_items,
        formulas.seeds_binomial,
        formulas.superconductor_vortices,
        formulas.survey_unknown_n,
        formulas.transplant_lognormal,
        formulas.travel_mode,
        formulas.wells_logit,
        formulas.wine_graphical,
        matrices.gp_poisson,
        matrices.gp_regression,
        matrices.topography_kriging,
        recurrences.airline_holt_winters,
        recurrences.arma11,
        recurrences.cholera_sir_rk4,
        recurrences.garch11,
        recurrences.gas_oil_rk4,
        recurrences.mining_hawkes,
        recurrences.nile_kalman,
        recurrences.pendulum_swing_up,
    )
}
"""The formula of each model."""


def compiled(name: str, data: Arrays) -> Callable[[Array], tuple[float, Array]]:
    """Value and gradient at x (n,), NumPy in and NumPy out; compiled at the first x."""
    return compiled_formula(FORMULAS[name], data)


def compiled_formula(formula: Formula, data: Arrays) -> Callable[[Array], tuple[float, Array]]:
    """Value and gradient of a formula."""
    function = jax.jit(jax.value_and_grad(partial(formula, data)))

    def evaluate(x: Array) -> tuple[float, Array]:
        value, gradient = function(x)
        return float(value), np.asarray(gradient)

    return evaluate
