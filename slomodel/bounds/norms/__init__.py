"""Upper bounds on norms of matrices, of higher-degree forms and of polynomials on the sphere."""
