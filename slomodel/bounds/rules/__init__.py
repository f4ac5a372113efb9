"""Rules, one principle a file: `(part, radius) -> Enclosure` of the derivatives.

    linear_predictors       Σ φ(a·x + b): logistic, Poisson and robust regression, phase retrieval
    log_sum_exp             softmax regression; `averages`: log-sum-exps inside recurrences
    layered_networks        networks with their losses
    radial_functions        functions of lengths ‖Ax + b‖
    majorant_series         polynomials: factorisations, least squares of products
    symmetric_powers        ‖Y - Σ x^⊗k‖², symmetric tensors
    curved_terms            any f, as the sum over its nonlinear terms
    gradient_jets           any f, by norms of derivatives of blocks of variables
    interval_entries        few variables: intervals for the entries of H over cells
    power_series            few variables: the Taylor series of f over cells
    entries_over_ball       intervals for the entries of H over the whole ball

`table` lists them. `predictors/`, `networks/`, `series/`, `jets/` and `cells` serve the rules.
"""
