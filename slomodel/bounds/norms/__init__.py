"""Upper bounds on norms of matrices, of forms of higher degree, of polynomials on the sphere."""
