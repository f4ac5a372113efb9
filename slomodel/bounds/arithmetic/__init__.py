"""Rounding: every proof about floating point stands here.

rounding            sums, products, quotients, roots and norms of numbers, rounded up or down
midpoint_radius     products and sums of matrices, with a bound on the error in norm
interval            arrays of intervals, rounded outward; `interval_einsum` sums their products
upper_bounds        expressions in numbers >= 0, rounded up once for all their errors
sums_of_products    errors of sums of products of inexact rows
triangular          triangular systems of intervals
monomials           tables of monomials; `power_series`: coefficients and a norm of the others
"""
