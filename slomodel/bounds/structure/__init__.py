"""Recognition of what an objective is made of, and rewriting into forms that rules recognise.

Files named as rules recognise what these bound: `linear_predictors`, `log_sum_exp`, `networks`,
`radial_functions`, `curved_terms`, `averages`, `sums_of_squares` (symmetric powers), and
`matrix_chains` (majorant series). `gram_form`, `exponentials`, `gathers`, `lengths`,
`negative_powers`, `near_identity`, `short_sums` and `recurrences` rewrite; `invariances`,
`axis_actions` and `shifts` find maps of the variables that leave f as it is, for certificates.
"""
